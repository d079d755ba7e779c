/**
 * Test a plugin without a scheduler: `running` serves it on a real socket and speaks the scheduler's side.
 *
 * @module
 */

export { makeNode, makePod, type NodeParts, type PodParts } from "./builders.ts";
export { Cluster } from "./cluster.ts";
export { Host, Refused, type RunOptions, running, type Simulated, type Verdict } from "./host.ts";
