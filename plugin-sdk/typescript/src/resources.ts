/** Kubernetes quantities as the scheduler counts: CPU in thousandths of a core, anything else in units, rounded up. */

import type { Node, Pod } from "./objects.ts";

const NUMBER = /^([+-]?)([0-9]+)?(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?$/;
const DECIMAL: Record<string, number> = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const BINARY: Record<string, bigint> = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n };

/**
 * A quantity of a resource.
 * @throws RangeError if the text is none.
 */
export function units(resource: string, quantity: string | number): number {
  const found = NUMBER.exec(String(quantity));
  if (!found || (found[2] === undefined && !found[3]))
    throw new RangeError(`not a quantity: ${JSON.stringify(quantity)}`);
  const [, sign, whole = "", fraction = "", suffix = "", exponent = "0"] = found;
  const digits = BigInt(whole + fraction) << (BINARY[suffix] ?? 0n);
  const power = (DECIMAL[suffix] ?? Number(exponent)) - fraction.length + (resource === "cpu" ? 3 : 0);
  const value =
    power >= 0 ? digits * 10n ** BigInt(power) : ceiling(digits, 10n ** BigInt(-power), sign === "-");
  return Number(sign === "-" ? -value : value);
}

/** What the pod requests of a resource: its containers and overhead, and at least what one init container does. */
export function request(pod: Pod, resource: string): number {
  const of = (requests?: Record<string, string>) =>
    requests?.[resource] ? units(resource, requests[resource]) : 0;
  let lasting = 0;
  let peak = 0;
  for (const each of pod.spec.initContainers ?? []) {
    const needed = of(each.resources?.requests);
    if (each.restartPolicy === "Always") lasting += needed;
    peak = Math.max(peak, lasting + (each.restartPolicy === "Always" ? 0 : needed));
  }
  const together = pod.spec.containers.reduce((sum, each) => sum + of(each.resources?.requests), lasting);
  return Math.max(together, peak) + of(pod.spec.overhead);
}

/** What a node has of a resource for pods. */
export function allocatable(node: Node, resource: string): number {
  const quantity = node.status.allocatable?.[resource];
  return quantity ? units(resource, quantity) : 0;
}

function ceiling(digits: bigint, divisor: bigint, negative: boolean): bigint {
  return negative ? digits / divisor : (digits + divisor - 1n) / divisor;
}
