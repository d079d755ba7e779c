import assert from "node:assert/strict";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import {
  FilterRequest,
  FilterResponse,
  UnreserveRequest,
} from "../src/generated/berth/plugin/v1/scheduling.ts";
import { TtrpcErrorInfo, TtrpcRequest, TtrpcResponse } from "../src/generated/berth/plugin/v1/ttrpc.ts";
import { definePlugin } from "../src/index.ts";
import { type Host, makeNode, makePod, running } from "../src/testing/index.ts";

const SERVICE = "berth.plugin.v1.SchedulingService";
const nodes = [makeNode("n0"), makeNode("n1")];
const pod = makePod("p");
const plugin = definePlugin({ name: "x", filter: () => "no" });

function header(length: number, stream: number, type: number): Buffer {
  const made = Buffer.alloc(10);
  made.writeUInt32BE(length, 0);
  made.writeUInt32BE(stream, 4);
  made[8] = type;
  return made;
}

function frame(stream: number, method: string, payload: Uint8Array, timeoutNano = 60e9): Buffer {
  const request = { service: SERVICE, method, payload: Buffer.from(payload), timeoutNano, metadata: [] };
  const message = TtrpcRequest.encode(request).finish();
  return Buffer.concat([header(message.length, stream, 1), message]);
}

/** The second socket of a host's plugin, and what is read there. */
class Wire {
  readonly socket: Socket;
  #data = Buffer.alloc(0);

  constructor(host: Host) {
    this.socket = connect(`${host.address.replace("unix:", "")}.ttrpc`);
    this.socket.on("data", (data) => {
      this.#data = Buffer.concat([this.#data, data]);
    });
    this.socket.on("error", () => undefined);
  }

  async read(): Promise<{ stream: number; response: TtrpcResponse }> {
    while (this.#data.length < 10 || this.#data.length < 10 + this.#data.readUInt32BE(0))
      await once(this.socket, "data");
    const end = 10 + this.#data.readUInt32BE(0);
    const found = {
      stream: this.#data.readUInt32BE(4),
      response: TtrpcResponse.decode(this.#data.subarray(10, end)),
    };
    this.#data = this.#data.subarray(end);
    return found;
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

function filter(host: Host, changes: object = {}): Uint8Array {
  return FilterRequest.encode({ call: { ...host.call(pod), ...changes }, candidates: undefined }).finish();
}

test("a frame is answered as a call of its own, however it is cut", async () => {
  await using host = await running(plugin, nodes);
  using wire = new Wire(host);
  const data = Buffer.concat([frame(7, "Filter", filter(host)), frame(9, "Unreserve", new Uint8Array())]);
  for (let at = 0; at < data.length; at += 11) wire.socket.write(data.subarray(at, at + 11));

  const [first, second] = [await wire.read(), await wire.read()];

  assert.deepEqual([first.stream, second.stream], [7, 9]);
  const answer = FilterResponse.decode(first.response.payload);
  assert.deepEqual(
    answer.verdicts?.reasons.map(({ text }) => text),
    ["no"],
  );
});

test("long and short answers and refusals on one connection are each whole", async () => {
  const many = Array.from({ length: 300 }, (_, i) => makeNode(`n${i}`));
  await using host = await running(plugin, many);
  using wire = new Wire(host);
  const refused = filter(host, { epoch: "other" });
  for (const stream of [1, 7]) {
    wire.socket.write(frame(stream, "Filter", filter(host)));
    wire.socket.write(frame(stream + 2, "Unreserve", new Uint8Array()));
    wire.socket.write(frame(stream + 4, "Filter", refused));
  }

  const heard = [];
  for (let i = 0; i < 6; i++) {
    const { stream, response } = await wire.read();
    heard.push([
      stream,
      FilterResponse.decode(response.payload).verdicts?.codes?.value,
      response.status?.code,
    ]);
  }

  const codes = Buffer.alloc(300, 1);
  assert.deepEqual(heard, [
    [1, codes, undefined],
    [3, undefined, 3],
    [5, undefined, 9],
    [7, codes, undefined],
    [9, undefined, 3],
    [11, undefined, 9],
  ]);
});

test("a frame that is refused says why", async () => {
  await using host = await running(plugin, nodes);
  using wire = new Wire(host);
  wire.socket.write(frame(1, "Filter", filter(host, { epoch: "other" })));
  wire.socket.write(frame(3, "Guess", new Uint8Array()));
  wire.socket.write(frame(5, "Filter", Buffer.from([0xff])));

  const answers = [await wire.read(), await wire.read(), await wire.read()];

  assert.deepEqual(
    answers.map(({ response }) => response.status?.code),
    [9, 12, 3],
  );
  const [detail] = answers[0]?.response.status?.details ?? [];
  assert.equal(TtrpcErrorInfo.decode(detail?.value ?? Buffer.alloc(0)).reason, "NOT_SYNCED");
});

test("a call in a frame keeps its deadline", async () => {
  await using host = await running(plugin, nodes);
  using wire = new Wire(host);
  wire.socket.write(frame(1, "Filter", filter(host, { generation: 99 }), 1e6));

  assert.equal((await wire.read()).response.status?.code, 4);
});

test("a frame that does not belong there ends its connection alone", async () => {
  await using host = await running(plugin, nodes);
  using beside = new Wire(host);
  const broken = {
    "too long": header((4 << 20) + 1, 1, 1),
    "a response": header(0, 1, 2),
    "an even stream": header(0, 2, 1),
    "no message": Buffer.concat([header(1, 1, 1), Buffer.from([0x0a])]),
  };
  for (const [name, data] of Object.entries(broken)) {
    using wire = new Wire(host);
    wire.socket.write(data);
    await once(wire.socket, "close");
    beside.socket.write(
      frame(1, "Unreserve", UnreserveRequest.encode({ call: host.call(pod), nodeName: "" }).finish()),
    );
    assert.equal((await beside.read()).response.status, undefined, name);
  }
});

test("the second socket is private", async () => {
  await using host = await running(plugin, nodes);
  const { mode } = await stat(`${host.address.replace("unix:", "")}.ttrpc`);

  assert.equal(mode & 0o777, 0o600);
});
