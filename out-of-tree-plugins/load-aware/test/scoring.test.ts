import assert from "node:assert/strict";
import { test } from "node:test";
import { makePod } from "@berth/plugin-sdk/testing";
import { estimate } from "../src/estimating.ts";
import { loadVariationRisk, riskOf, targetLoadPacking, variation } from "../src/scoring.ts";
import { given } from "./kit.ts";

for (const [utilization, target, expected] of [
  [0, 40, 40],
  [20, 40, 70],
  [40, 40, 100],
  [41, 40, 39],
  [70, 40, 20],
  [100, 40, 0],
  [101, 40, 0],
  [25, 50, 75],
  [75, 50, 25],
  [100, 100, 100],
] as const) {
  test(`packing to ${target} %, a node at ${utilization} % scores ${expected}`, () => {
    assert.equal(targetLoadPacking(utilization, target), expected);
  });
}

for (const [claim, mean, deviation, margin, sensitivity, expected] of [
  ["the mean is half of the risk", 0.25, 0, 1, 1, 88],
  ["deviation is the other half", 0.25, 0.25, 1, 1, 75],
  ["a root makes small deviations weigh more", 0.25, 0.25, 1, 2, 63],
  ["the margin scales deviation", 0.25, 0.25, 2, 1, 63],
  ["without margin deviation does not matter", 0.25, 0.25, 0, 1, 88],
  ["no part of the risk is above 1", 5, 5, 9, 1, 0],
] as const) {
  test(`load variation risk: ${claim}`, () => {
    assert.equal(loadVariationRisk(riskOf(mean, variation(deviation, margin, sensitivity))), expected);
  });
}

test("packing takes limits, else requests times the multiplier, else the default, and overhead", () => {
  const pod = makePod("p");
  pod.spec = {
    containers: [
      { name: "limited", resources: { limits: { cpu: "2" }, requests: { cpu: "1" } } },
      { name: "burstable", resources: { requests: { cpu: "101m" } } },
      { name: "unknown" },
    ],
    initContainers: [
      { name: "before", resources: { requests: { cpu: "64" } } },
      { name: "beside", restartPolicy: "Always", resources: { requests: { cpu: "200m" } } },
    ],
    overhead: { cpu: "5m" },
  };

  assert.equal(estimate(pod, given()).cpu, 2000 + 152 + 1000 + 300 + 5);
  const other = given({ defaultRequests: { cpu: "50m" }, defaultRequestsMultiplier: 2 });
  assert.equal(estimate(pod, other).cpu, 2000 + 202 + 50 + 400 + 5);
});

test("risk takes what is requested", () => {
  const pod = makePod("p", { requests: { cpu: "100m", memory: "1Ki" } });

  const amounts = estimate(pod, given({ strategy: "LoadVariationRiskBalancing" }));

  assert.deepEqual(amounts, { cpu: 100, memory: 1024 });
});
