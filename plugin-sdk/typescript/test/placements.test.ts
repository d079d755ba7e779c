import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, definePlugin, Normalization, type PluginSpec, SKIP } from "../src/index.ts";
import { makeNode, makePod, Refused, running } from "../src/testing/index.ts";

const pods = [makePod("p"), makePod("q")] as const;
const nodes = ["a", "b", "c"].map((name) => makeNode(name));
const made = (functions: Partial<PluginSpec>) => definePlugin({ name: "groups", ...functions });

test("a group may go to the nodes of each placement, of those asked about, in the author's order", async () => {
  const generatePlacements = () =>
    new Map([
      ["ends", [true, false, true]],
      ["1", [false, true, false]],
    ]);
  await using host = await running(made({ generatePlacements }), nodes);

  assert.deepEqual(
    [...((await host.generatePlacements("g", pods)) ?? [])],
    [
      ["ends", ["a", "c"]],
      ["1", ["b"]],
    ],
  );
  assert.deepEqual([...((await host.generatePlacements("g", pods, ["c"])) ?? [])], [["ends", ["c"]]]);
});

test("a plugin without an opinion on a group has no placements", async () => {
  await using host = await running(made({ generatePlacements: () => SKIP }), nodes);

  assert.equal(await host.generatePlacements("g", pods), undefined);
});

for (const [claim, answer, code, expected] of [
  ["a group that can go nowhere", "no zone is large enough", Code.UNSCHEDULABLE, /^no zone is large enough$/],
  ["a set for fewer nodes", new Map([["x", [true]]]), Code.ERROR, /groups: placement "x": .* 3 nodes, got 1/],
  [
    "a set without a name",
    new Map([["", [true, true, true]]]),
    Code.ERROR,
    /groups: placement "": expected a name/,
  ],
  ["a promise", Promise.resolve(SKIP), Code.ERROR, /generatePlacements has to answer at once/],
  ["an answer that is none", {}, Code.ERROR, /expected nothing, a text/],
] as [string, never, Code, RegExp][]) {
  test(`${claim} is refused with a text that says so`, async () => {
    await using host = await running(made({ generatePlacements: () => answer }), nodes);

    await assert.rejects(host.generatePlacements("g", pods), (error: Refused) => {
      assert.equal(error.status.code, code);
      assert.match(error.status.reasons.join(), expected);
      return true;
    });
  });
}

test("placements are scored by where their pods go", async () => {
  const asked: unknown[] = [];
  const plugin = made({
    normalization: Normalization.MIN_MAX,
    scorePlacements(group, pod, seen, proposed) {
      asked.push(group.name, pod.metadata.name);
      return proposed.map(({ assignments, nodes: used }) => {
        for (const [key, index] of assignments) asked.push(`${key.name} on ${seen.at(index).metadata.name}`);
        return -used.reduce((sum, each) => sum + each, 0);
      });
    },
  });
  await using host = await running(plugin, nodes);

  assert.deepEqual(await host.scorePlacements("g", pods, { p: "a", q: "c" }, { q: "b" }), [-2, -1]);
  assert.deepEqual(asked, ["g", "p", "p on a", "q on c", "q on b"]);
});

test("scores of placements may be none, and are checked as those of nodes", async () => {
  for (const [points, expected] of [
    [[1, 2], /expected 1 scores, got 2/],
    [[101], /0 to 100 is the range/],
    [7, /scorePlacements: expected integers or Scores/],
  ] as [never, RegExp][]) {
    await using host = await running(made({ scorePlacements: () => points }), nodes);
    await assert.rejects(host.scorePlacements("g", pods, { p: "a" }), expected);
  }
  await using host = await running(made({ scorePlacements: () => undefined }), nodes);
  assert.equal(await host.scorePlacements("g", pods, { p: "a" }), undefined);
});
