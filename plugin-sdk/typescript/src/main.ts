/** The program around a plugin: flags, environment, signals. */

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { ServerCredentials } from "@grpc/grpc-js";
import { AddressError, describe, SdkError } from "./errors.ts";
import { log, setLevel } from "./log.ts";
import type { Plugin } from "./plugin.ts";
import { Server } from "./serving.ts";

const FLAGS = {
  address: { type: "string", default: process.env.BERTH_PLUGIN_ADDRESS ?? "" },
  "metrics-address": { type: "string", default: process.env.BERTH_METRICS_ADDRESS ?? "" },
  "tls-certificate": { type: "string", default: "" },
  "tls-key": { type: "string", default: "" },
  "tls-authority": { type: "string", default: "" },
  grace: { type: "string", default: "5" },
  "log-level": { type: "string", default: "info" },
} as const;

/** How `serve` serves. */
export interface ServeOptions {
  readonly credentials?: ServerCredentials;
  readonly metricsAddress?: string;
  /** How long running calls may take to end. */
  readonly graceSeconds?: number;
  /** Ends the serving, beside SIGTERM and SIGINT. */
  readonly signal?: AbortSignal;
}

/** Serve the plugin as the program's flags and environment say; exit code 2 if it can't be. */
export async function main(plugin: Plugin, argv = process.argv.slice(2)): Promise<void> {
  try {
    const { values } = parseArgs({ args: argv, options: FLAGS });
    setLevel(values["log-level"]);
    const credentials = certificates(values["tls-certificate"], values["tls-key"], values["tls-authority"]);
    await serve(plugin, values.address, {
      ...(credentials && { credentials }),
      metricsAddress: values["metrics-address"],
      graceSeconds: Number(values.grace),
    });
  } catch (error) {
    process.stderr.write(`${plugin.name}: ${describe(error)}\n`);
    process.exitCode = error instanceof SdkError || error instanceof TypeError ? 2 : 1;
  }
}

/**
 * Serve the plugin until SIGTERM or SIGINT.
 * @throws AddressError if the address can't be served; TraceError if the environment asks for the impossible.
 */
export async function serve(plugin: Plugin, address: string, options: ServeOptions = {}): Promise<void> {
  if (!address) throw new AddressError("no address: give one, or set BERTH_PLUGIN_ADDRESS");
  const { promise, resolve } = Promise.withResolvers<void>();
  const server = new Server(plugin, address, options.credentials && { credentials: options.credentials });
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  options.signal?.addEventListener("abort", () => resolve());
  await server.start();
  if (options.metricsAddress) {
    log.info("serving metrics", { port: await server.serveMetrics(options.metricsAddress) });
  }
  await promise;
  log.info("stopping", { plugin: plugin.name });
  await server.stop(options.graceSeconds);
}

function certificates(certificate: string, key: string, authority: string): ServerCredentials | undefined {
  if (!certificate && !key && !authority) return undefined;
  if (!certificate || !key || !authority) {
    throw new AddressError("tls-certificate, tls-key and tls-authority go together");
  }
  const pair = { cert_chain: readFileSync(certificate), private_key: readFileSync(key) };
  return ServerCredentials.createSsl(readFileSync(authority), [pair], true);
}
