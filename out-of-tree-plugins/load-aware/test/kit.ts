/** Servers of metrics for tests, over real sockets, and what they are made of. */

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Plugin } from "@berth/plugin-sdk";
import { settings } from "../src/settings.ts";

/** What a server answers. */
export interface Answer {
  readonly status?: number;
  readonly body: unknown;
}

/** A server that answers by a function; asked for by `await using`. */
export async function answering(answer: (request: IncomingMessage) => Answer | Promise<Answer>) {
  const server = createServer(async (request, response) => {
    const { status = 200, body } = await answer(request);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { address, server, [Symbol.asyncDispose]: async () => void server.close() };
}

/** NodeMetrics of nodes: cores and gibibytes in use. */
export function nodeMetrics(at: number, used: Record<string, readonly [cpu: string, memory: string]>) {
  const items = Object.entries(used).map(([name, [cpu, memory]]) => ({
    metadata: { name },
    timestamp: new Date(at).toISOString(),
    window: "20s",
    usage: { cpu, memory },
  }));
  return { kind: "NodeMetricsList", apiVersion: "metrics.k8s.io/v1beta1", items };
}

/** Prometheus' answer to an instant query: values by the label `instance`. */
export function vector(at: number, values: Record<string, number | string>) {
  const result = Object.entries(values).map(([instance, value]) => ({
    metric: { instance },
    value: [at / 1e3, String(value)],
  }));
  return { status: "success", data: { resultType: "vector", result } };
}

/** Arguments over the defaults, checked. */
export const given = (parts: Record<string, unknown> = {}) => settings().read(parts);

/** Resolves when the plugin next asks for everything to be asked anew. */
export function changed(plugin: Plugin): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = plugin.requeue.listen(({ action }) => {
    if (action?.$case !== "requeueAll") return;
    end();
    resolve();
  });
  return promise;
}
