/** What the plugin counts, in Prometheus' text format. */

const BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

interface Durations {
  readonly buckets: number[];
  count: number;
  sum: number;
}

/** Something that a plugin counts or measures itself. */
export interface Metric {
  /** Of letters, digits and underscores; counters end with "_total". */
  readonly name: string;
  readonly kind: "counter" | "gauge";
  readonly help: string;
  readonly values: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

/** Counters and gauges of one plugin; each line is made when it is read. */
export class Meter {
  readonly #info: string;
  readonly #calls = new Map<string, number>();
  readonly #durations = new Map<string, Durations>();
  readonly #refusals = new Map<string, number>();
  #passed = 0;
  #rejected = 0;
  #held = { generation: 0, nodes: 0, pods: 0, other: 0 };

  constructor(name: string, version: string) {
    this.#info = `berth_plugin_info{plugin=${JSON.stringify(name)},version=${JSON.stringify(version)}} 1`;
  }

  /** A call was answered, with a gRPC code by its name. */
  answered(method: string, code: string, seconds: number): void {
    count(this.#calls, `method="${method}",code="${code}"`);
    const known = this.#durations.get(method) ?? { buckets: BOUNDS.map(() => 0), count: 0, sum: 0 };
    this.#durations.set(method, known);
    known.count += 1;
    known.sum += seconds;
    const bucket = BOUNDS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) known.buckets[bucket] = (known.buckets[bucket] as number) + 1;
  }

  /** Nodes were passed or turned down. */
  verdicts(passed: number, rejected: number): void {
    this.#passed += passed;
    this.#rejected += rejected;
  }

  /** A message of the state stream was refused. */
  refused(reason: string): void {
    count(this.#refusals, `reason="${reason}"`);
  }

  /** This is held of the cluster. */
  held(generation: number, nodes: number, pods: number, other: number): void {
    this.#held = { generation, nodes, pods, other };
  }

  /** Everything as text, with the author's own metrics at the end. */
  text(own: Iterable<Metric> = []): string {
    const { generation, nodes, pods, other } = this.#held;
    const table = (name: string, rows: Map<string, number>) =>
      [...rows].sort().map(([labels, value]) => `${name}{${labels}} ${value}`);
    const text = [
      ...head("berth_plugin_info", "gauge", "The plugin."),
      this.#info,
      ...head("berth_plugin_answered_calls_total", "counter", "Calls answered, by method and gRPC code."),
      ...table("berth_plugin_answered_calls_total", this.#calls),
      ...head(
        "berth_plugin_call_duration_seconds",
        "histogram",
        "Time to answer a call, waiting for state included.",
      ),
      ...[...this.#durations].sort().flatMap(([method, each]) => histogram(method, each)),
      ...head("berth_plugin_node_verdicts_total", "counter", "Nodes that passed Filter or were turned down."),
      `berth_plugin_node_verdicts_total{verdict="passed"} ${this.#passed}`,
      `berth_plugin_node_verdicts_total{verdict="rejected"} ${this.#rejected}`,
      ...head(
        "berth_plugin_state_refusals_total",
        "counter",
        "Messages of the state stream that were refused, by reason.",
      ),
      ...table("berth_plugin_state_refusals_total", this.#refusals),
      ...head(
        "berth_plugin_state_generation",
        "gauge",
        "The generation of the state that is held, 0 if none is.",
      ),
      `berth_plugin_state_generation ${generation}`,
      ...head("berth_plugin_state_objects", "gauge", "What is held of the cluster."),
      `berth_plugin_state_objects{kind="nodes"} ${nodes}`,
      `berth_plugin_state_objects{kind="pods"} ${pods}`,
      `berth_plugin_state_objects{kind="other"} ${other}`,
      ...[...own].flatMap(lines),
    ];
    return `${text.join("\n")}\n`;
  }
}

function lines({ name, kind, help, values }: Metric): string[] {
  const rows = values.map(({ labels, value }) => {
    const named = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(text)}`);
    return `${name}${named.length ? `{${named.join(",")}}` : ""} ${value}`;
  });
  return [...head(name, kind, help), ...rows];
}

function count(rows: Map<string, number>, labels: string): void {
  rows.set(labels, (rows.get(labels) ?? 0) + 1);
}

function head(name: string, kind: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`];
}

function histogram(method: string, { buckets, count: total, sum }: Durations): string[] {
  const name = "berth_plugin_call_duration_seconds";
  let below = 0;
  const rows = BOUNDS.map((bound, i) => {
    below += buckets[i] as number;
    return `${name}_bucket{method="${method}",le="${bound}"} ${below}`;
  });
  rows.push(`${name}_bucket{method="${method}",le="+Inf"} ${total}`);
  return [...rows, `${name}_sum{method="${method}"} ${sum}`, `${name}_count{method="${method}"} ${total}`];
}
