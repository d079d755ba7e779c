import assert from "node:assert/strict";
import { test } from "node:test";

import { FailureLog } from "../src/failurelog.ts";

test("a function that fails at every pod has few lines, and the next one counts those left out", () => {
  let now = 0;
  const lines: unknown[] = [];
  const log = new FailureLog(
    (_, fields) => lines.push(fields),
    () => now,
  );
  for (let i = 0; i < 100; i++) log.failed({ of: "p", error: "2 scores for 3 nodes" });
  now = 2;
  log.failed({ of: "p", error: "2 scores for 3 nodes" });

  assert.equal(lines.length, 21);
  assert.deepEqual(lines[20], { of: "p", error: "2 scores for 3 nodes", left_out: 80 });
});
