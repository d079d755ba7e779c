import assert from "node:assert/strict";
import { test } from "node:test";
import { Action } from "@berth/plugin-sdk";
import { makeNode, makePod, running } from "@berth/plugin-sdk/testing";
import { plugin } from "./hello.ts";

const blue = { team: "blue" };
const nodes = [
  makeNode("blue", { labels: blue }),
  makeNode("red", { labels: { team: "red" } }),
  makeNode("free"),
];

test("pods stay off other teams' nodes and prefer their own", async () => {
  await using host = await running(plugin, nodes);

  const { passing, scores } = await host.filterScore(makePod("p", { labels: blue }));

  assert.deepEqual(passing, ["blue", "free"]);
  assert.deepEqual(scores, { blue: 100, free: 0 });
});

test("the label is an argument", async () => {
  await using host = await running(plugin, nodes, { arguments: { label: "tenant" } });

  const { passing } = await host.filter(makePod("p", { labels: blue }));

  assert.equal(passing.length, 3);
});

test("a node that joins the team is worth another attempt", async () => {
  await using host = await running(plugin, nodes);
  const joins = (team: string) => ({
    resource: "Node",
    action: Action.UPDATE_NODE_LABEL,
    new: Buffer.from(JSON.stringify({ metadata: { labels: { team } } })),
  });

  const table = await host.hints([makePod("p", { labels: blue })], joins("red"), joins("blue"));

  assert.deepEqual(table, [[false], [true]]);
});
