import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, definePlugin, type PluginSpec } from "../src/index.ts";
import { makeNode, makePod, type Refused, running } from "../src/testing/index.ts";

const made = (functions: Partial<PluginSpec>) => definePlugin({ name: "groups", ...functions });
const nodes = [makeNode("a"), makeNode("b")];
const pods: [ReturnType<typeof makePod>, ReturnType<typeof makePod>] = [makePod("p"), makePod("q")];

test("a group is judged by each number of pods", async () => {
  const plugin = made({
    placementFeasible({ pods: { length } }, _pod, { remaining, scheduled }) {
      if (scheduled >= length) return undefined;
      return scheduled + remaining < length ? "too few" : { code: Code.WAIT, reasons: ["not yet"] };
    },
  });
  await using host = await running(plugin, nodes);

  const verdicts = await host.placementFeasible(
    "g",
    pods,
    { remaining: 2, scheduled: 0 },
    { remaining: 0, scheduled: 2 },
    { remaining: 0, scheduled: 1 },
  );
  assert.deepEqual(
    verdicts.map(({ code }) => code),
    [Code.WAIT, Code.SUCCESS, Code.UNSCHEDULABLE],
  );
});

test("evictions are proposed for a group, in their order", async () => {
  const plugin = made({ podGroupPostFilter: () => [{ victimUids: ["a"] }, { victimUids: ["b", "c"] }] });
  await using host = await running(plugin, nodes);

  assert.deepEqual(await host.podGroupPostFilter("g", ...pods), [["a"], ["b", "c"]]);
});

for (const [claim, answer, code, expected] of [
  ["a group that no eviction helps", "no pod", Code.UNSCHEDULABLE, /^no pod$/],
  ["a proposal without victims", [{ victimUids: [] }], Code.ERROR, /a proposal evicts no pod/],
  ["a promise", Promise.resolve([]), Code.ERROR, /podGroupPostFilter has to answer at once/],
] as [string, never, Code, RegExp][]) {
  test(`${claim} is refused with a text that says so`, async () => {
    await using host = await running(made({ podGroupPostFilter: () => answer }), nodes);

    await assert.rejects(host.podGroupPostFilter("g", ...pods), (error: Refused) => {
      assert.equal(error.status.code, code);
      assert.match(error.status.reasons.join(), expected);
      return true;
    });
  });
}
