/** The thread that fetches metrics and reads them: each message asks for one fetch, and gets one outcome. */

import { parentPort, type MessagePort, workerData } from "node:worker_threads";
import { type Outcome, pack } from "./crossing.ts";
import { MetricsServer } from "./metrics_server.ts";
import { Prometheus } from "./prometheus.ts";
import type { Settings } from "./settings.ts";

const settings = workerData as Settings;
const source =
  settings.metricProvider.type === "Prometheus" ? new Prometheus(settings) : new MetricsServer(settings);
const port = parentPort as MessagePort;
// A caller that no longer wants the answer ends the thread.
const { signal } = new AbortController();

port.on("message", () => {
  source.fetch(signal).then(
    (readings) => {
      const packed = pack(readings);
      port.postMessage({ packed } satisfies Outcome, [packed.numbers.buffer]);
    },
    (error: unknown) => port.postMessage({ error: messageOf(error) } satisfies Outcome),
  );
});

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
