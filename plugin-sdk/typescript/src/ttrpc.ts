/**
 * Calls in ttrpc's frames, on a second unix socket beside gRPC's.
 *
 * What the host sends is bounded: a frame has at most 4 MiB, and nothing is read while answers pile up.
 * Source: docs/protocol.md "ttrpc beside gRPC"; github.com/containerd/ttrpc PROTOCOL.md.
 */

import { rmSync } from "node:fs";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { basename } from "node:path";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { status } from "@grpc/grpc-js";
import { isShared, makePrivate, prepareSocket } from "./address.ts";
import { type Answer, type Answering, CALLS, PATIENCE_MILLISECONDS } from "./conversing.ts";
import { AddressError, CallError, describe, invalid, shortened } from "./errors.ts";
import * as group from "./generated/berth/plugin/v1/group.ts";
import * as placement from "./generated/berth/plugin/v1/placement.ts";
import * as queueing from "./generated/berth/plugin/v1/queueing.ts";
import * as scheduling from "./generated/berth/plugin/v1/scheduling.ts";
import { TtrpcErrorInfo, TtrpcRequest, TtrpcResponse } from "./generated/berth/plugin/v1/ttrpc.ts";
import { placementFeasible, podGroupPostFilter } from "./groups.ts";
import { log } from "./log.ts";
import { generatePlacements, scorePlacements } from "./placements.ts";
import { queueingHints, sortKeys } from "./queueing.ts";

const SUFFIX = ".ttrpc";
/** What a unix socket's address holds. */
const LONGEST_PATH = 107;
const HEADER = 10;
const REQUEST = 1;
const RESPONSE = 2;
const NO_HEADER = new Uint8Array(HEADER);
/** The tag of TtrpcResponse.payload. */
const PAYLOAD = (2 << 3) | WireType.LengthDelimited;
const MAX_BYTES = 4 << 20;
const UNWRITTEN_BYTES = 8 << 20;
/** Calls of a connection that wait before no more are read. */
const MAX_WAITING = 1024;
const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";

interface Method {
  readonly name: string;
  readonly answer: Answer;
  readonly read: (payload: Buffer) => object;
  readonly encode: (response: never, writer: BinaryWriter) => BinaryWriter;
}

const METHODS = new Map<string, Method>();
const ANSWERS = {
  ...CALLS,
  generatePlacements,
  scorePlacements,
  placementFeasible,
  podGroupPostFilter,
  queueingHints,
  sortKeys,
};
const MESSAGES = { ...scheduling, ...placement, ...group, ...queueing };
for (const [name, answer] of Object.entries<Answer>(ANSWERS)) {
  const services = {
    ...scheduling.SchedulingServiceService,
    ...placement.PlacementServiceService,
    ...group.GroupServiceService,
    ...queueing.QueueingServiceService,
  };
  const { path, requestDeserialize } = services[name as keyof typeof services];
  const { encode } = MESSAGES[responseOf(path)];
  METHODS.set(path, { name, answer, read: requestDeserialize, encode });
}

/** The second socket. */
export class TtrpcServer {
  readonly #path: string;
  readonly #answers: Answering;
  readonly #connections = new Set<Connection>();
  readonly #server: NetServer;

  constructor(path: string, answers: Answering) {
    this.#path = path;
    this.#answers = answers;
    this.#server = createServer((socket) => {
      const connection = new Connection(socket, this.#answers);
      this.#connections.add(connection);
      socket.once("close", () => this.#connections.delete(connection));
    });
  }

  /** What the handshake announces. */
  get name(): string {
    return basename(this.#path);
  }

  /**
   * Listen.
   * @throws AddressError if another process does.
   */
  async start(): Promise<void> {
    await prepareSocket(this.#path);
    const before = process.umask(isShared() ? 0o117 : 0o177);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once("error", reject);
        this.#server.listen(this.#path, resolve);
      });
    } catch (error) {
      throw new AddressError(`unix:${this.#path}: ${describe(error)}`);
    } finally {
      process.umask(before);
    }
    makePrivate(this.#path);
  }

  /** Let calls that wait end, and hang up. */
  async stop(graceSeconds: number): Promise<void> {
    this.#server.close();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, graceSeconds * 1e3);
    const idle = [...this.#connections].map((connection) => connection.idle());
    await Promise.race([Promise.all(idle), promise]);
    clearTimeout(timer);
    for (const connection of this.#connections) connection.close();
    rmSync(this.#path, { force: true });
  }
}

/** A server on a socket beside that one; undefined where the path would be too long for a socket. */
export async function serveTtrpc(beside: string, answers: Answering): Promise<TtrpcServer | undefined> {
  const path = beside + SUFFIX;
  if (Buffer.byteLength(path) > LONGEST_PATH) {
    log.warn("ttrpc is not served, the path is too long", { path });
    return undefined;
  }
  const server = new TtrpcServer(path, answers);
  await server.start();
  return server;
}

class Connection {
  readonly #socket: Socket;
  readonly #answers: Answering;
  readonly #waitsForIdle: (() => void)[] = [];
  #pieces: Buffer[] = [];
  #size = 0;
  #wanted = HEADER;
  #waiting = 0;
  #writer = new BinaryWriter();

  constructor(socket: Socket, answers: Answering) {
    this.#socket = socket;
    this.#answers = answers;
    socket.on("data", (data: Buffer) => this.#received(data));
    socket.on("drain", () => this.#pace());
    socket.on("error", () => undefined);
  }

  /** Wait until no call does. */
  idle(): Promise<void> {
    if (!this.#waiting) return Promise.resolve();
    return new Promise((resolve) => this.#waitsForIdle.push(resolve));
  }

  close(): void {
    this.#socket.destroy();
  }

  #received(data: Buffer): void {
    this.#pieces.push(data);
    this.#size += data.length;
    if (this.#size < this.#wanted) return;
    const whole = this.#pieces.length === 1 ? data : Buffer.concat(this.#pieces, this.#size);
    try {
      const rest = whole.subarray(this.#frames(whole));
      this.#pieces = rest.length ? [rest] : [];
      this.#size = rest.length;
    } catch (error) {
      log.warn("ttrpc connection ended", { error: describe(error) });
      this.close();
    }
  }

  /** Take the frames that are whole; where the next one begins. */
  #frames(data: Buffer): number {
    let at = 0;
    while (data.length - at >= HEADER) {
      const [length, stream] = [data.readUInt32BE(at), data.readUInt32BE(at + 4)];
      if (length > MAX_BYTES)
        throw new RangeError(`a frame of ${length} bytes, at most ${MAX_BYTES} are read`);
      if (data[at + 8] !== REQUEST || stream % 2 === 0)
        throw new RangeError(`a frame of type ${data[at + 8]} on stream ${stream}`);
      this.#wanted = HEADER + length;
      if (data.length - at < this.#wanted) return at;
      this.#take(stream, TtrpcRequest.decode(data.subarray(at + HEADER, at + this.#wanted)));
      at += this.#wanted;
    }
    this.#wanted = HEADER;
    return at;
  }

  #take(stream: number, { service, method: name, payload, timeoutNano, metadata }: TtrpcRequest): void {
    const method = METHODS.get(`/${service}/${name}`);
    if (!method) {
      this.#refuse(stream, new CallError(status.UNIMPLEMENTED, `no such call: ${service}/${name}`));
      return;
    }
    const request = readable(method, payload);
    if (request instanceof CallError) {
      this.#refuse(stream, request);
      return;
    }
    const carrier = Object.fromEntries(metadata.map(({ key, value }) => [key, value]));
    const parent = { ...carrier, system: "ttrpc" as const };
    const deadline = Date.now() + (timeoutNano > 0 ? timeoutNano / 1e6 : PATIENCE_MILLISECONDS);
    this.#waiting++;
    this.#answers.call(method.name, method.answer, request, parent, deadline, (error, response) => {
      this.#waiting--;
      if (error) this.#refuse(stream, error);
      else this.#answer(stream, method, response);
      this.#pace();
      if (!this.#waiting) for (const resolve of this.#waitsForIdle.splice(0)) resolve();
    });
    this.#pace();
  }

  /**
   * Send a TtrpcResponse with this payload, encoded where it is sent from. Every vector of its own would be memory
   * outside the heap, and for some hundred answers about thousands of nodes Node collects all of the heap.
   */
  #answer(stream: number, method: Method, response: object | undefined): void {
    const writer = this.#writer;
    this.#writer = new BinaryWriter(); // in its place if it fails
    const frame = method
      .encode(response as never, writer.raw(NO_HEADER).uint32(PAYLOAD).fork())
      .join()
      .finish();
    this.#writer = writer;
    const length = frame.length - HEADER;
    if (length > MAX_BYTES) {
      const text = `an answer of ${length} bytes, at most ${MAX_BYTES} are sent`;
      this.#refuse(stream, new CallError(status.RESOURCE_EXHAUSTED, text));
    } else this.#write(stream, frame);
  }

  #refuse(stream: number, { code, message, remedy }: CallError): void {
    const info = () => Buffer.from(TtrpcErrorInfo.encode({ reason: remedy, domain: "berth" }).finish());
    const details = remedy ? [{ typeUrl: ERROR_INFO, value: info() }] : [];
    const refused = { status: { code, message: shortened(message), details }, payload: Buffer.alloc(0) };
    this.#write(stream, TtrpcResponse.encode(refused, new BinaryWriter().raw(NO_HEADER)).finish());
  }

  /** Send a frame that has room for its header. */
  #write(stream: number, frame: Uint8Array): void {
    if (!this.#socket.writable) return;
    const header = new DataView(frame.buffer, frame.byteOffset, HEADER);
    header.setUint32(0, frame.length - HEADER);
    header.setUint32(4, stream);
    header.setUint8(8, RESPONSE);
    this.#socket.write(frame);
  }

  /** Read nothing while the host does not take its answers, or too many calls wait. */
  #pace(): void {
    if (this.#waiting >= MAX_WAITING || this.#socket.writableLength > UNWRITTEN_BYTES) this.#socket.pause();
    else if (this.#socket.isPaused()) this.#socket.resume();
  }
}

type ResponseName = `${string}Response` & keyof typeof MESSAGES;

/** The message that answers a method, by its path. */
function responseOf(path: string): ResponseName {
  return `${basename(path)}Response` as ResponseName;
}

function readable(method: Method, payload: Buffer): object | CallError {
  try {
    return method.read(payload);
  } catch (error) {
    return invalid(`${method.name}: ${describe(error)}`);
  }
}
