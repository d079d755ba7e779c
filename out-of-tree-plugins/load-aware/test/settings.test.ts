import assert from "node:assert/strict";
import { test } from "node:test";
import { ArgumentError } from "@berth/plugin-sdk";
import { settings } from "../src/settings.ts";
import { given } from "./kit.ts";

test("the defaults are right", () => {
  assert.equal(given().targetUtilization, 40);
});

for (const [wrong, expected] of [
  [{ strategy: "Packing" }, /^strategy: expected one of TargetLoadPacking, LoadVariationRiskBalancing$/],
  [{ targetUtilization: 0 }, /^targetUtilization: at least 1$/],
  [{ targetUtilisation: 50 }, /^targetUtilisation: unknown; known are strategy, targetUtilization/],
  [{ defaultRequests: { cpu: "much" } }, /^defaultRequests\.cpu: "much" is no quantity; write cores as "1"/],
  [{ defaultRequestsMultiplier: "1.5" }, /^defaultRequestsMultiplier: expected a number, got "1.5"$/],
  [
    { safeVarianceSensitivity: 0 },
    /^safeVarianceSensitivity: has to be above 0; .* safeVarianceMargin to 0$/,
  ],
  [{ metricProvider: { type: "SignalFx" } }, /^metricProvider\.type: expected one of Kubernetes/],
  [{ metricProvider: { type: "Prometheus" } }, /^metricProvider\.address: Prometheus needs one, as http:/],
  [{ metricProvider: { address: "prometheus:9090" } }, /^metricProvider\.address: .* write it as https:/],
  [{ prometheus: { nodeLabel: " " } }, /^prometheus\.nodeLabel: is empty; leave it out/],
  [{ maxAgeSeconds: 59 }, /^maxAgeSeconds: 59 is less than twice fetchIntervalSeconds.*set 60 or more$/],
] as [Record<string, unknown>, RegExp][]) {
  test(`${JSON.stringify(wrong)} is refused with the field and a remedy`, () => {
    assert.throws(
      () => settings().read(wrong),
      (error) => error instanceof ArgumentError && expected.test(error.errors[0] ?? ""),
    );
  });
}
