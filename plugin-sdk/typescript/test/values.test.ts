import assert from "node:assert/strict";
import { test } from "node:test";
import { allocatable, argumentsOf, definePlugin, request, units } from "../src/index.ts";
import { packBits, packScores, packVerdicts, ReasonTable, unpackBits, unpackScores } from "../src/packing.ts";
import { makeNode, makePod, running } from "../src/testing/index.ts";

for (const [resource, quantity, expected] of [
  ["cpu", "250m", 250],
  ["cpu", "1.5", 1500],
  ["cpu", "0.0001", 1],
  ["memory", "1Gi", 2 ** 30],
  ["memory", "1.5Ki", 1536],
  ["memory", "1e3", 1000],
  ["memory", "100m", 1],
  ["nvidia.com/gpu", 2, 2],
] as const) {
  test(`${quantity} of ${resource} are ${expected}`, () => {
    assert.equal(units(resource, quantity), expected);
  });
}

test("what is no quantity is refused", () => {
  for (const text of ["", ".", "1Q", "one"]) assert.throws(() => units("cpu", text), /not a quantity/);
});

test("a pod requests what its containers do, or its largest init container", () => {
  const pod = makePod("p", { requests: { cpu: "500m" } });
  pod.spec.initContainers = [
    { name: "side", restartPolicy: "Always", resources: { requests: { cpu: "100m" } } },
    { name: "once", resources: { requests: { cpu: "2" } } },
  ];

  assert.equal(request(pod, "cpu"), 2100);
  assert.equal(allocatable(makeNode("n"), "cpu"), 8000);
});

test("bitmaps come back as they went, for all lengths around a byte", () => {
  for (let count = 0; count <= 17; count++) {
    const mask = Uint8Array.from({ length: count }, (_, i) => Number(i % 3 === 0));
    assert.deepEqual(unpackBits(packBits(mask), count), mask);
    assert.throws(() => unpackBits(packBits(mask), count + 8), /has \d+ bytes, not/);
  }
});

for (const [points, form] of [
  [[0, 255], "uint8"],
  [[-1, 256], "int32"],
  [[0, 2 ** 31], "int64"],
] as const) {
  test(`scores ${points.join(" and ")} travel as ${form}`, () => {
    const message = packScores({ points, normalization: 4 }, 2);

    assert.equal(message.values?.$case, form);
    assert.deepEqual(unpackScores(message, 2), points);
  });
}

test("more reasons than an answer can hold share the last row", () => {
  const table = new ReasonTable();
  const codes = Uint8Array.from({ length: 400 }, (_, i) => table.code({ code: 3, text: `reason ${i}` }));

  assert.deepEqual([table.reasons.length, codes[253], codes[254], codes[399]], [255, 254, 255, 255]);
  assert.equal(packVerdicts({ codes, reasons: table.reasons }).reasons.length, 255);
});

const settings = argumentsOf(
  { label: "team", source: { seconds: 30, share: 1 }, names: [""] },
  {
    label: { enum: ["team", "tenant"] },
    "source.seconds": { minimum: 1 },
    "source.share": { fraction: true, maximum: 1 },
  },
  ({ names }) => (names.includes("bad") ? ["names: bad"] : []),
);

test("arguments stand over their defaults, deep down", () => {
  assert.deepEqual(settings.read({ source: { share: 0.5 }, names: ["a", "b"] }), {
    label: "team",
    source: { seconds: 30, share: 0.5 },
    names: ["a", "b"],
  });
});

for (const [given, error] of [
  [{ other: 1 }, "other: unknown; known are label, source, names"],
  [{ label: "x" }, "label: expected one of team, tenant"],
  [{ source: { seconds: 0 } }, "source.seconds: at least 1"],
  [{ source: { seconds: 1.5 } }, "source.seconds: expected an integer, got 1.5"],
  [{ source: [] }, "source: expected an object, got []"],
  [{ names: ["a", 1] }, "names[1]: expected a string, got 1"],
  [{ names: ["bad"] }, "names: bad"],
] as const) {
  test(`arguments are refused: ${error}`, async () => {
    await using host = await running(definePlugin({ name: "x", arguments: settings }));

    assert.deepEqual(await host.configure(given), [error]);
  });
}

test("arguments that are announced say their types", () => {
  const { properties } = settings.schema() as {
    properties: Record<string, { type: string; default?: unknown }>;
  };

  assert.deepEqual(properties.label, { type: "string", enum: ["team", "tenant"], default: "team" });
  assert.equal(properties.source?.type, "object");
});

test("a plugin without arguments takes none", async () => {
  await using host = await running(definePlugin({ name: "x" }));

  assert.deepEqual(await host.configure({ a: 1 }), ["a: unknown argument of profile default-scheduler"]);
});
