/** The arguments of a profile, in the names of the Trimaran plugins of scheduler-plugins where those have one. */

import { argumentsOf, units } from "@berth/plugin-sdk";

const DEFAULTS = {
  strategy: "TargetLoadPacking",
  targetUtilization: 40,
  defaultRequests: { cpu: "1" },
  defaultRequestsMultiplier: 1.5,
  safeVarianceMargin: 1,
  safeVarianceSensitivity: 1,
  metricProvider: {
    type: "KubernetesMetricsServer",
    address: "",
    tokenFile: "",
    caFile: "",
  },
  prometheus: {
    cpuQuery: 'sum by (instance) (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[2m]))',
    memoryQuery: "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes",
    nodeLabel: "instance",
  },
  fetchIntervalSeconds: 30,
  windowSeconds: 900,
  reportingIntervalSeconds: 60,
  maxAgeSeconds: 300,
};

/** The arguments of one profile. */
export type Settings = typeof DEFAULTS;

/** No pod bound longer ago than this is estimated, and no metrics older than this are kept, whatever a profile says. */
export const HORIZON_SECONDS = 7200;

/** The arguments of all profiles. */
export const settings = () => argumentsOf(DEFAULTS, RULES, complaints);

const RULES = {
  strategy: {
    enum: ["TargetLoadPacking", "LoadVariationRiskBalancing"],
    description: "what a node's score is made of",
  },
  targetUtilization: {
    minimum: 1,
    maximum: 100,
    description: "TargetLoadPacking: how much of a node's CPU to use, in percent; 10 below what is wanted",
  },
  "defaultRequests.cpu": {
    description: "TargetLoadPacking: what a container without requests is taken to use",
  },
  defaultRequestsMultiplier: {
    fraction: true,
    minimum: 1,
    description: "TargetLoadPacking: what a container without limits is taken to use, in its requests",
  },
  safeVarianceMargin: {
    fraction: true,
    minimum: 0,
    description: "LoadVariationRiskBalancing: how much deviation weighs against the mean",
  },
  safeVarianceSensitivity: {
    fraction: true,
    minimum: 0,
    description:
      "LoadVariationRiskBalancing: the root of the deviation that is taken; small ones weigh more with 2",
  },
  "metricProvider.type": {
    enum: ["KubernetesMetricsServer", "Prometheus"],
    description: "where metrics come from",
  },
  "metricProvider.address": {
    description: "URL of the API server (by default the cluster's own) or of Prometheus",
  },
  "metricProvider.tokenFile": {
    description: "file with a bearer token; in a cluster, the service account's",
  },
  "metricProvider.caFile": {
    description: "file with the certificates to trust; in a cluster, the cluster's",
  },
  "prometheus.cpuQuery": { description: "PromQL: cores in use, one series a node" },
  "prometheus.memoryQuery": { description: "PromQL: bytes in use, one series a node" },
  "prometheus.nodeLabel": { description: "the label with a node's name or address" },
  fetchIntervalSeconds: { minimum: 1, maximum: 3600, description: "how often metrics are fetched" },
  windowSeconds: {
    minimum: 60,
    maximum: 86_400,
    description: "LoadVariationRiskBalancing: over how long mean and deviation are taken",
  },
  reportingIntervalSeconds: {
    minimum: 0,
    maximum: 3600,
    description: "how long a pod runs before metrics are taken to show what it uses",
  },
  maxAgeSeconds: { minimum: 2, maximum: 3600, description: "metrics older than this are not believed" },
};

function* complaints(given: Settings): Iterable<string> {
  const { metricProvider, prometheus } = given;
  const { type, address } = metricProvider;
  try {
    units("cpu", given.defaultRequests.cpu);
  } catch {
    const text = JSON.stringify(given.defaultRequests.cpu);
    yield `defaultRequests.cpu: ${text} is no quantity; write cores as "1", or thousandths as "500m"`;
  }
  if (given.safeVarianceSensitivity === 0)
    yield "safeVarianceSensitivity: has to be above 0; to leave deviation out, set safeVarianceMargin to 0";
  if (address && !/^https?:$/.test(URL.parse(address)?.protocol ?? ""))
    yield `metricProvider.address: ${JSON.stringify(address)} is no URL; write it as https://host:port`;
  if (type === "Prometheus" && !address)
    yield "metricProvider.address: Prometheus needs one, as http://prometheus-k8s.monitoring:9090";
  for (const name of ["cpuQuery", "memoryQuery", "nodeLabel"] as const) {
    if (!prometheus[name].trim()) yield `prometheus.${name}: is empty; leave it out for the default`;
  }
  if (given.maxAgeSeconds < 2 * given.fetchIntervalSeconds)
    yield `maxAgeSeconds: ${given.maxAgeSeconds} is less than twice fetchIntervalSeconds, so that one failed fetch makes metrics stale; set ${2 * given.fetchIntervalSeconds} or more`;
}
