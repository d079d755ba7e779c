/**
 * What load is worth, from 0 to 100.
 *
 * Source: kubernetes-sigs/scheduler-plugins, KEP 61 (Trimaran) and pkg/trimaran.
 */

const MOST = 100;

/** The score where nothing is known of a node's load: the middle. */
export const NEUTRAL = 50;

/** Rising from the target to 100 where the target is used, falling from the target to 0 above; utilization in percent. */
export function targetLoadPacking(utilization: number, target: number): number {
  if (utilization > MOST) return 0;
  if (utilization > target) return Math.round((target * (MOST - utilization)) / (MOST - target));
  return Math.round(((MOST - target) * utilization) / target + target);
}

/** How much variation adds to the risk, 0 to 1, of the deviation as a share of the capacity. */
export function variation(deviation: number, margin: number, sensitivity: number): number {
  return share(margin * share(deviation) ** (1 / sensitivity));
}

/** The risk of overload, 0 to 1, of the mean as a share of the capacity, and of the variation. */
export function riskOf(mean: number, varies: number): number {
  return (share(mean) + varies) / 2;
}

/** 100 without any risk, 0 at the highest. */
export function loadVariationRisk(risk: number): number {
  return Math.round((1 - risk) * MOST);
}

function share(value: number): number {
  return Math.min(Math.max(value, 0), 1);
}
