/** Pods and nodes as the API server wrote them, on the types of kubernetes-types. */

import type {
  Node as ApiNode,
  Pod as ApiPod,
  NodeSpec,
  NodeStatus,
  PodSpec,
} from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";

type Metadata = ObjectMeta & {
  name: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
};

/** A pod; what an author nearly always reads is there, empty if need be. */
export type Pod = ApiPod & { metadata: Metadata & { namespace: string; uid: string }; spec: PodSpec };

/** A node, likewise. */
export type Node = ApiNode & { metadata: Metadata; spec: NodeSpec; status: NodeStatus };

/** Any object of the API. */
export type Document = Record<string, unknown> & { metadata: ObjectMeta };

/**
 * The pod that these bytes say.
 * @throws Error if they are no object with metadata.
 */
export function decodePod(data: Uint8Array): Pod {
  const pod = decodeObject(data) as unknown as Pod;
  named(pod.metadata);
  pod.spec ??= { containers: [] };
  return pod;
}

/**
 * The node that these bytes say.
 * @throws Error if they are no object with metadata.
 */
export function decodeNode(data: Uint8Array): Node {
  const node = decodeObject(data) as unknown as Node;
  named(node.metadata);
  node.spec ??= {};
  node.status ??= {};
  return node;
}

/**
 * Any object that these bytes say.
 * @throws Error if they are no object with metadata.
 */
export function decodeObject(data: Uint8Array): Document {
  const object = decodeJson(data);
  object.metadata ??= {};
  if (!isRecord(object.metadata)) throw new Error("metadata: expected an object");
  return object as Document;
}

/**
 * The JSON object that these bytes say.
 * @throws Error if they say none.
 */
export function decodeJson(data: Uint8Array): Record<string, unknown> {
  const object: unknown = JSON.parse(
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8"),
  );
  if (!isRecord(object)) throw new Error("expected a JSON object");
  return object;
}

/** Whether a value of JSON is an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function named(metadata: Metadata): void {
  metadata.name ??= "";
  for (const part of ["labels", "annotations"] as const) {
    metadata[part] ??= {};
    if (!isRecord(metadata[part])) throw new Error(`metadata.${part}: expected an object`);
  }
}
