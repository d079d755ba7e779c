/** Serve a plugin: gRPC and ttrpc on unix sockets, gRPC over TCP with certificates, health, graceful stop. */

import { rmSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import {
  type handleUnaryCall,
  Metadata,
  Server as GrpcServer,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerWritableStream,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { isShared, makePrivate, prepareSocket, unixPath } from "./address.ts";
import { Answering, CALLS, PATIENCE_MILLISECONDS } from "./conversing.ts";
import { AddressError, type CallError, describe, shortened } from "./errors.ts";
import { GroupServiceService } from "./generated/berth/plugin/v1/group.ts";
import { IdentityServiceService } from "./generated/berth/plugin/v1/identity.ts";
import { PlacementServiceService } from "./generated/berth/plugin/v1/placement.ts";
import {
  QueueingServiceService,
  type RequeueRequest,
  type RequeueResponse,
} from "./generated/berth/plugin/v1/queueing.ts";
import { SchedulingServiceService } from "./generated/berth/plugin/v1/scheduling.ts";
import {
  StateServiceService,
  type SyncRequest,
  type SyncResponse,
} from "./generated/berth/plugin/v1/state.ts";
import { placementFeasible, podGroupPostFilter } from "./groups.ts";
import { Health, HealthService } from "./health.ts";
import { configure, handshake } from "./identity.ts";
import { log } from "./log.ts";
import { generatePlacements, scorePlacements } from "./placements.ts";
import type { Plugin } from "./plugin.ts";
import { queueingHints, sortKeys } from "./queueing.ts";
import { Session } from "./session.ts";
import { Stream } from "./sync.ts";
import { Tracing } from "./tracing.ts";
import { serveTtrpc, type TtrpcServer } from "./ttrpc.ts";

// Replies and calls grow with the cluster; Sync stays below 4 MiB by itself.
const MAX_MESSAGE_BYTES = 64 << 20;

/** How a plugin is served. */
export interface ServerOptions {
  /** Certificates for TCP; demand the client's too. */
  readonly credentials?: ServerCredentials;
  readonly tracing?: Tracing;
}

/** A plugin being served. */
export class Server {
  readonly plugin: Plugin;
  readonly address: string;
  readonly session: Session;
  readonly #server: GrpcServer;
  readonly #credentials: ServerCredentials | undefined;
  readonly #health = new Health();
  readonly #ended = Promise.withResolvers<void>();
  #tracing: Tracing | undefined;
  #metrics: HttpServer | undefined;
  #ttrpc: TtrpcServer | undefined;

  constructor(plugin: Plugin, address: string, options: ServerOptions = {}) {
    this.plugin = plugin;
    this.address = address;
    this.session = new Session(plugin);
    this.#credentials = options.credentials;
    this.#tracing = options.tracing;
    this.#server = new GrpcServer({
      "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
      "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
    });
  }

  /**
   * Listen.
   * @throws AddressError if the address is in use, or can't be served; TraceError.
   */
  async start(): Promise<void> {
    const { name, version } = this.plugin;
    this.#tracing ??= await Tracing.fromEnvironment(name, version);
    const answers = new Answering(this.session, this.#tracing);
    this.#register(answers);
    this.session.watch(() => this.#health.report(this.session.ready));
    await this.#listen(answers);
    this.plugin.clock.serve(true);
    log.info("serving", { plugin: name, version, address: this.address });
  }

  /** Serve GET /metrics in Prometheus' text format, and GET /state, at host:port; the port that it is. */
  async serveMetrics(address: string): Promise<number> {
    const at = address.lastIndexOf(":");
    const [host, port] = [address.slice(0, at), Number(address.slice(at + 1))];
    this.#metrics = createServer((request, response) => {
      const { status, type, text } = this.#page(request.method === "GET" ? request.url : undefined);
      response.writeHead(status, { "content-type": type });
      response.end(text);
    });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#metrics.once("error", (error) =>
      reject(new AddressError(`metrics: ${address}: ${describe(error)}`)),
    );
    this.#metrics.listen(port, host, resolve);
    await promise;
    return (this.#metrics.address() as { port: number }).port;
  }

  /** Turn unready, let calls that are running end, and write out spans. */
  async stop(graceSeconds = 5): Promise<void> {
    this.#health.stop();
    this.plugin.clock.serve(false);
    this.#ended.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => this.#server.forceShutdown(), graceSeconds * 1e3);
    this.#server.tryShutdown(() => resolve());
    if (!graceSeconds) this.#server.forceShutdown();
    // Side by side, so that the grace is over for calls of both sockets at once.
    await Promise.all([promise, this.#ttrpc?.stop(graceSeconds)]);
    clearTimeout(timer);
    this.#metrics?.close();
    this.#metrics?.closeAllConnections();
    await this.#tracing?.shutdown();
    const path = unixPath(this.address);
    if (path) rmSync(path, { force: true });
  }

  #page(path: string | undefined): { status: number; type: string; text: string } {
    const type = "text/plain; version=0.0.4; charset=utf-8";
    try {
      if (path === "/metrics")
        return { status: 200, type, text: this.session.meter.text(this.plugin.metrics?.()) };
      const state = path === "/state" ? this.plugin.state?.() : undefined;
      if (state)
        return { status: 200, type: "application/json", text: `${JSON.stringify(state, undefined, 2)}\n` };
    } catch (error) {
      return { status: 500, type, text: `${describe(error)}\n` }; // the author's failure, not the process's
    }
    return { status: 404, type, text: "" };
  }

  async #listen(answers: Answering): Promise<void> {
    const path = unixPath(this.address);
    if (path) {
      await prepareSocket(path);
      this.#ttrpc = await serveTtrpc(path, answers);
      this.session.ttrpcSocket = this.#ttrpc?.name;
    } else if (!this.#credentials) {
      throw new AddressError(`${this.address}: only unix:/path sockets are served without certificates`);
    }
    const credentials = (!path && this.#credentials) || ServerCredentials.createInsecure();
    // The socket is private, or open to its group alone, from its first moment on.
    const before = process.umask(isShared() ? 0o117 : 0o177);
    try {
      await new Promise<void>((resolve, reject) => {
        const where = path ? `unix:${path}` : this.address;
        this.#server.bindAsync(where, credentials, (error) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      throw new AddressError(`${this.address}: ${describe(error)}`);
    } finally {
      process.umask(before);
    }
    if (path) makePrivate(path);
  }

  #register(answers: Answering): void {
    const scheduling: UntypedServiceImplementation = {};
    for (const [name, answer] of Object.entries(CALLS)) scheduling[name] = unary(answers, name, answer);
    scheduling.converse = (stream: Parameters<Answering["converse"]>[0]) => {
      void this.#ended.promise.then(() => stream.end());
      answers.converse(stream);
    };
    this.#server.addService(SchedulingServiceService, scheduling);
    this.#server.addService(PlacementServiceService, {
      generatePlacements: unary(answers, "generatePlacements", generatePlacements),
      scorePlacements: unary(answers, "scorePlacements", scorePlacements),
    });
    this.#server.addService(GroupServiceService, {
      placementFeasible: unary(answers, "placementFeasible", placementFeasible),
      podGroupPostFilter: unary(answers, "podGroupPostFilter", podGroupPostFilter),
    });
    this.#server.addService(IdentityServiceService, {
      handshake: unary(answers, "handshake", handshake),
      configure: unary(answers, "configure", configure),
    });
    this.#server.addService(QueueingServiceService, {
      queueingHints: unary(answers, "queueingHints", queueingHints),
      sortKeys: unary(answers, "sortKeys", sortKeys),
      requeue: (stream: ServerWritableStream<RequeueRequest, RequeueResponse>) => this.#requeue(stream),
    });
    this.#server.addService(StateServiceService, {
      sync: (stream: ServerDuplexStream<SyncRequest, SyncResponse>) => this.#sync(stream),
    });
    this.#server.addService(HealthService, this.#health.implementation(this.#ended.promise));
  }

  #sync(stream: ServerDuplexStream<SyncRequest, SyncResponse>): void {
    const place = new Stream(this.session);
    this.session.stream = place;
    const end = this.session.watch(() => {
      if (this.session.stream !== place) finish();
    });
    const finish = () => {
      end();
      stream.end();
    };
    stream.write(place.held());
    stream.on("data", (request: SyncRequest) => {
      if (this.session.stream !== place) return finish();
      const response = place.answer(request);
      if (response) stream.write(response);
    });
    stream.on("error", end);
    stream.on("end", finish);
    void this.#ended.promise.then(finish);
    this.session.announce();
  }

  #requeue(stream: ServerWritableStream<RequeueRequest, RequeueResponse>): void {
    stream.sendMetadata(new Metadata()); // from it the host learns that it is heard from now on
    const end = this.plugin.requeue.listen((message) => stream.write(message));
    stream.on("cancelled", end);
    stream.on("error", end);
    void this.#ended.promise.then(() => {
      end();
      stream.end();
    });
  }
}

function unary(
  answers: Answering,
  name: string,
  answer: Parameters<Answering["call"]>[1],
): handleUnaryCall<object, object> {
  return (call, done) => {
    const header = (key: string) => call.metadata.get(key)[0]?.toString();
    const parent = { traceparent: header("traceparent"), tracestate: header("tracestate") };
    const wanted = Number(call.getDeadline());
    const deadline = Number.isFinite(wanted) ? wanted : Date.now() + PATIENCE_MILLISECONDS;
    answers.call(name, answer, call.request, parent, deadline, (error, response) =>
      error ? done(refusal(error)) : done(null, response),
    );
  };
}

function refusal({ code, message, remedy }: CallError): {
  code: number;
  details: string;
  metadata: Metadata;
} {
  const metadata = new Metadata();
  if (remedy) metadata.set("berth-reason", remedy);
  return { code, details: shortened(message), metadata };
}
