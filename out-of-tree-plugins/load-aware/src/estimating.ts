/** What a pod will use, as long as no metrics tell. */

import { type Pod, request, units } from "@berth/plugin-sdk";
import type { Settings } from "./settings.ts";

/** An amount of both resources: thousandths of a core, bytes. */
export interface Amounts {
  readonly cpu: number;
  readonly memory: number;
}

/** The fields of a pod that estimates are made of. */
export const POD_FIELDS = [
  "/spec/containers/*/resources",
  "/spec/initContainers/*/resources",
  "/spec/initContainers/*/restartPolicy",
  "/spec/overhead",
  "/spec/schedulerName",
];

const NOTHING: Amounts = { cpu: 0, memory: 0 };

/**
 * What the pod is taken to use: limits or more than requests where packing, requests where balancing risk; nothing,
 * if what it says is no quantity.
 */
export function estimate(pod: Pod, settings: Settings): Amounts {
  try {
    return estimated(pod, settings);
  } catch (error) {
    if (error instanceof RangeError) return NOTHING;
    throw error;
  }
}

/** A node's capacity; 0 if it shows none, or no quantity. */
export function capacity(resource: string, quantity: string | undefined): number {
  try {
    return quantity ? units(resource, quantity) : 0;
  } catch {
    return 0;
  }
}

function estimated(pod: Pod, settings: Settings): Amounts {
  const memory = request(pod, "memory");
  if (settings.strategy !== "TargetLoadPacking") return { cpu: request(pod, "cpu"), memory };
  const lasting = (pod.spec.initContainers ?? []).filter((each) => each.restartPolicy === "Always");
  const overhead = pod.spec.overhead?.cpu;
  const cpu = [...pod.spec.containers, ...lasting].reduce(
    (sum, { resources }) => sum + container(resources?.limits?.cpu, resources?.requests?.cpu, settings),
    overhead ? units("cpu", overhead) : 0,
  );
  return { cpu, memory };
}

function container(limit: string | undefined, requested: string | undefined, settings: Settings): number {
  if (limit) return units("cpu", limit);
  if (requested) return Math.round(units("cpu", requested) * settings.defaultRequestsMultiplier);
  return units("cpu", settings.defaultRequests.cpu);
}
