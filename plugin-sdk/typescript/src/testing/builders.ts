/** Nodes and pods in as few words as a test needs. */

import type { Node, Pod } from "../objects.ts";

/** What a test says of a node. */
export interface NodeParts {
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly allocatable?: Record<string, string>;
  readonly taints?: NonNullable<Node["spec"]["taints"]>;
}

/** What a test says of a pod. */
export interface PodParts {
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly requests?: Record<string, string>;
  readonly schedulerName?: string;
}

/** A node. */
export function makeNode(name: string, parts: NodeParts = {}): Node {
  const { labels = {}, annotations = {}, taints = [] } = parts;
  const allocatable = parts.allocatable ?? { cpu: "8", memory: "32Gi", pods: "110" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, uid: `node-${name}`, labels, annotations },
    spec: { taints },
    status: { allocatable, capacity: allocatable },
  };
}

/** A pod with one container; its UID is made from its name. */
export function makePod(name: string, parts: PodParts = {}): Pod {
  const { namespace = "default", labels = {}, annotations = {}, requests = {} } = parts;
  const schedulerName = parts.schedulerName ?? "default-scheduler";
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, uid: `pod-${namespace}-${name}`, labels, annotations },
    spec: {
      schedulerName,
      containers: [{ name: "main", image: "image", resources: { requests, limits: requests } }],
    },
    status: { phase: "Pending" },
  };
}
