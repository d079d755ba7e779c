/** metrics-server: NodeMetrics of metrics.k8s.io, through the API server. It keeps no past, so that is kept here. */

import { units } from "@berth/plugin-sdk";
import { type Endpoint, FetchError, getJson } from "./http.ts";
import type { Measured, Reading, Readings, Source } from "./readings.ts";
import type { Settings } from "./settings.ts";

const PATH = "/apis/metrics.k8s.io/v1beta1/nodes";
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

interface NodeMetrics {
  readonly metadata: { readonly name: string };
  readonly timestamp: string;
  readonly usage: { readonly cpu: string; readonly memory: string };
}

interface Sample {
  readonly name: string;
  readonly at: number;
  readonly cpu: number;
  readonly memory: number;
}

/** The metrics of the API server at the address, by default the one of the cluster around this process. */
export class MetricsServer implements Source {
  readonly #provider: Settings["metricProvider"];
  readonly #windowMilliseconds: number;
  readonly #past = new Map<string, Sample[]>();

  constructor(settings: Settings) {
    this.#provider = settings.metricProvider;
    this.#windowMilliseconds =
      settings.strategy === "LoadVariationRiskBalancing" ? settings.windowSeconds * 1e3 : 0;
  }

  async fetch(signal: AbortSignal): Promise<Readings> {
    const list = await getJson(endpoint(this.#provider), PATH, signal);
    const items = (list as { items?: unknown } | null)?.items;
    if (!Array.isArray(items)) throw new FetchError(`${PATH}: expected a list of NodeMetrics`);
    const found = new Map<string, Reading>();
    for (const item of items as NodeMetrics[]) {
      const sample = sampled(item);
      if (sample) found.set(sample.name, this.#reading(sample));
    }
    for (const name of this.#past.keys()) {
      if (!found.has(name)) this.#past.delete(name);
    }
    return found;
  }

  #reading(sample: Sample): Reading {
    const before = (this.#past.get(sample.name) ?? []).filter(
      ({ at }) => at < sample.at && at > sample.at - this.#windowMilliseconds,
    );
    const samples = [...before, sample];
    this.#past.set(sample.name, samples);
    return {
      at: sample.at,
      cpu: measured(samples.map(({ cpu }) => cpu)),
      memory: measured(samples.map(({ memory }) => memory)),
    };
  }
}

function sampled(item: NodeMetrics): Sample | undefined {
  try {
    const at = Date.parse(item.timestamp);
    const { name } = item.metadata;
    const { cpu, memory } = item.usage;
    if (Number.isNaN(at)) return undefined;
    return { name, at, cpu: units("cpu", cpu), memory: units("memory", memory) };
  } catch {
    return undefined; // one node's nonsense is no reason to disbelieve the others
  }
}

function measured(values: readonly number[]): Measured {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, deviation: Math.sqrt(variance) };
}

function endpoint({ address, tokenFile, caFile }: Settings["metricProvider"]): Endpoint {
  if (address) return { address, tokenFile, caFile };
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (!host || !port)
    throw new FetchError("metricProvider.address: not in a cluster, so the API server's URL has to be given");
  // Where containers have no mount namespace, this variable says what mount paths stand behind.
  const root = (process.env.CONTAINER_SANDBOX_MOUNT_POINT ?? "").replace(/\/+$/, "");
  return {
    address: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    tokenFile: tokenFile || `${root}${SERVICE_ACCOUNT}/token`,
    caFile: caFile || `${root}${SERVICE_ACCOUNT}/ca.crt`,
  };
}
