/** One resource of all nodes, by index: what there is, what is used, how much that varies. NaN: not known. */
export class Column {
  #capacity = new Float64Array();
  #used = new Float64Array();
  #variation = new Float64Array();

  /** Put a node's numbers. */
  put(index: number, capacity: number, used: number, variation: number): void {
    if (index >= this.#capacity.length) this.#grow(index + 1);
    this.#capacity[index] = capacity;
    this.#used[index] = used;
    this.#variation[index] = variation;
  }

  /** The share of the capacity that is used with so much more. */
  share(index: number, more: number): number {
    return ((this.#used[index] as number) + more) / (this.#capacity[index] as number);
  }

  /** What the node's variation adds to its risk. */
  variation(index: number): number {
    return this.#variation[index] as number;
  }

  #grow(count: number): void {
    const room = Math.max(count, 2 * this.#capacity.length);
    const larger = (values: Float64Array) => {
      const grown = new Float64Array(room);
      grown.set(values);
      return grown;
    };
    this.#capacity = larger(this.#capacity);
    this.#used = larger(this.#used);
    this.#variation = larger(this.#variation);
  }
}
