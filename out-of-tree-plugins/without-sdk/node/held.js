/** The plugin's copy of the cluster: all nodes by index, up to one generation. */

/** A message of the stream that cannot be applied. */
export class Refused extends Error {
  constructor(reason, message) {
    super(message);
    this.reason = `NACK_REASON_${reason}`;
  }
}

/** One state of the cluster; generation 0 means that nothing is held. */
export class Held {
  epoch = "";
  generation = 0;
  /** The first generation since which no node has changed its index. */
  indicesSince = 0;
  nodes = [];

  /** Holds what a full transfer brought. */
  static transferred(epoch, { generation, node_count }, changes) {
    const held = new Held();
    held.#apply(changes, node_count);
    return Object.assign(held, { epoch, generation, indicesSince: generation });
  }

  /** Takes one step. A step that is held already is skipped. */
  follow({ base_generation, generation, changes, node_count }) {
    if (generation <= this.generation) return;
    if (base_generation !== this.generation) throw new Refused("GAP", `${this.generation} is held`);
    if (this.#apply(changes, node_count)) this.indicesSince = generation;
    this.generation = generation;
  }

  /** Applies the changes in order; true if indices are others than before. */
  #apply(changes, nodeCount) {
    const before = this.nodes.length;
    let removed = false;
    for (const { node_upsert, node_remove } of changes) {
      // Pods and objects of other kinds were not asked for.
      if (node_upsert) this.#put(node_upsert);
      if (node_remove) {
        this.#remove(node_remove);
        removed = true;
      }
    }
    if (this.nodes.length !== nodeCount) throw new Refused("MISMATCH", `${this.nodes.length} nodes are held`);
    return removed || before !== this.nodes.length;
  }

  #put({ index, name, object }) {
    let labels;
    try {
      labels = labelsOf(object);
    } catch (error) {
      throw new Refused("BAD_OBJECT", error.message);
    }
    if (index !== this.nodes.length) this.#checkName(index, name);
    this.nodes[index] = { name, labels };
  }

  #remove({ index, name }) {
    this.#checkName(index, name);
    const last = this.nodes.pop();
    if (index < this.nodes.length) this.nodes[index] = last;
  }

  #checkName(index, name) {
    if (this.nodes[index]?.name !== name) throw new Refused("MISMATCH", `${name} is not at ${index}`);
  }
}

/** The labels of an API object's JSON, which is all that the plugin reads of nodes and pods. */
export function labelsOf(json) {
  return new Map(Object.entries(JSON.parse(json.toString()).metadata.labels ?? {}));
}
