/** What people see of the plugin: metrics for Prometheus, and a page that says how things stand. */

import type { Metric } from "@berth/plugin-sdk";
import type { Loads } from "./loads.ts";

type Profiles = ReadonlyMap<string, Loads>;

/** The metrics of all profiles. */
export function metrics(profiles: Profiles, now: number): Metric[] {
  const each = <Value>(read: (loads: Loads, profile: string) => Value[]) =>
    [...profiles].flatMap(([profile, loads]) => read(loads, profile));
  return [
    {
      name: "load_aware_fetches_total",
      kind: "counter",
      help: "Fetches of metrics, by profile and outcome.",
      values: each(({ feed }, profile) => [
        { labels: { profile, outcome: "success" }, value: feed.outcomes.succeeded },
        { labels: { profile, outcome: "failure" }, value: feed.outcomes.failed },
      ]),
    },
    {
      name: "load_aware_nodes",
      kind: "gauge",
      help: "Nodes by the state of their metrics; those without fresh ones score neutral.",
      values: each((loads, profile) =>
        Object.entries(loads.counts()).map(([kind, value]) => ({
          labels: { profile, metrics: kind },
          value,
        })),
      ),
    },
    {
      name: "load_aware_metrics_age_seconds",
      kind: "gauge",
      help: "Age of the newest metrics.",
      values: each((loads, profile) => {
        const newest = loads.newest();
        return newest === undefined ? [] : [{ labels: { profile }, value: (now - newest) / 1e3 }];
      }),
    },
  ];
}

/** How things stand, by profile. */
export function state(profiles: Profiles, now: number): object {
  return { profiles: Object.fromEntries([...profiles].map(([name, loads]) => [name, stateOf(loads, now)])) };
}

function stateOf(loads: Loads, now: number): object {
  const { settings, feed, stage } = loads;
  const { succeeded, failed, error, lastSuccess } = feed.outcomes;
  const newest = loads.newest();
  return {
    strategy: settings.strategy,
    provider: { type: settings.metricProvider.type, address: settings.metricProvider.address },
    metrics: stage,
    scores: stage === "FRESH" ? "by load" : "neutral",
    nodes: loads.counts(),
    newestMetrics: moment(newest),
    ageSeconds: newest === undefined ? null : (now - newest) / 1e3,
    fetches: { succeeded, failed, lastSuccess: moment(lastSuccess), error: error ?? null },
  };
}

function moment(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString();
}
