import assert from "node:assert/strict";
import { test } from "node:test";
import { Clock, definePlugin } from "../src/index.ts";
import { makeNode, makePod, running } from "../src/testing/index.ts";

const NOON = 1_800_000_000_000;

/** A plugin whose timers write down when they ran. */
function alarms() {
  const rang: number[] = [];
  const plugin = definePlugin({
    name: "alarms",
    usesClock: true,
    filter: () => (plugin.clock.now() < NOON ? "node(s) are closed before noon" : undefined),
  });
  const set = (milliseconds: number, ...then: number[]) =>
    plugin.clock.after(milliseconds, () => {
      rang.push(plugin.clock.now() - NOON);
      for (const each of then) set(each);
    });
  return { plugin, rang, set };
}

test("answers follow the time that is said", async () => {
  await using host = await running(alarms().plugin, [makeNode("n")]);

  await host.setTime(NOON - 1);
  assert.deepEqual((await host.filter(makePod("p"))).passing, []);
  await host.setTime(NOON);
  assert.deepEqual((await host.filter(makePod("p"))).passing, ["n"]);
});

test("each timer runs at its own time, also those that another one sets", async () => {
  const { plugin, rang, set } = alarms();
  await using host = await running(plugin, [makeNode("n")]);
  await host.setTime(NOON);
  set(60);
  set(10, 5, 500);
  set(20).cancel();

  assert.equal(await host.setTime(NOON + 100), NOON + 510);
  assert.deepEqual(rang, [10, 15, 60]);
  assert.equal(await host.setTime(NOON + 600), undefined);
});

test("a timer that sets itself at once is due later", async () => {
  const { plugin, rang, set } = alarms();
  await using host = await running(plugin, [makeNode("n")]);
  await host.setTime(NOON);
  set(0);

  assert.ok(Number(await host.setTime(NOON)) > NOON);
  assert.deepEqual(rang, []);
});

test("a time of another run leaves timers what they have left, and so does a stream that says none", async () => {
  const { plugin, rang, set } = alarms();
  await using host = await running(plugin, [makeNode("n")]);
  await host.setTime(NOON);
  set(60_000);

  assert.equal(await host.setTime(NOON - 86_400_000), NOON - 86_400_000 + 60_000);
  assert.deepEqual(rang, []);
  const { promise, resolve } = Promise.withResolvers<void>();
  plugin.clock.after(1, resolve);
  await host.sync();
  await promise;
  assert.notEqual(plugin.clock.now(), NOON - 86_400_000);
});

test("a timer that fails leaves the others", async () => {
  const { plugin, rang, set } = alarms();
  await using host = await running(plugin, [makeNode("n")]);
  await host.setTime(NOON);
  plugin.clock.after(1, () => {
    throw new Error("broken");
  });
  set(2);

  await host.setTime(NOON + 2);

  assert.deepEqual(rang, [2]);
});

test("the machine's time is read once and counted on", () => {
  let steady = NOON;
  const clock = new Clock(() => steady);
  steady += 5;

  assert.equal(clock.now(), NOON + 5);
});
