/** grpc.health.v1: liveness under the empty name, readiness under the scheduling service. */

import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import {
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";

/** The name of readiness. */
export const READINESS = "berth.plugin.v1.SchedulingService";

const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;

interface Query {
  readonly service: string;
}

interface State {
  readonly status: number;
}

const messages = {
  requestSerialize: ({ service }: Query) =>
    Buffer.from(new BinaryWriter().uint32(10).string(service).finish()),
  requestDeserialize(data: Buffer): Query {
    const reader = new BinaryReader(data);
    let service = "";
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      if (field === 1) service = reader.string();
      else reader.skip(type);
    }
    return { service };
  },
  responseSerialize: (state: State) => Buffer.from(new BinaryWriter().uint32(8).int32(state.status).finish()),
  responseDeserialize(data: Buffer): State {
    const reader = new BinaryReader(data);
    let found = 0;
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      if (field === 1) found = reader.int32();
      else reader.skip(type);
    }
    return { status: found };
  },
};

/** The service, as gRPC's servers and clients want it. */
export const HealthService = {
  check: { path: "/grpc.health.v1.Health/Check", requestStream: false, responseStream: false, ...messages },
  watch: { path: "/grpc.health.v1.Health/Watch", requestStream: false, responseStream: true, ...messages },
} as const;

/** What the plugin says of itself. */
export class Health {
  readonly #known = new Map([
    ["", SERVING],
    [READINESS, NOT_SERVING],
  ]);
  readonly #watchers = new Set<() => void>();

  /** Ready or not. */
  report(ready: boolean): void {
    this.#set(READINESS, ready ? SERVING : NOT_SERVING);
  }

  /** Neither ready nor long alive; watchers hear it, and their streams end. */
  stop(): void {
    for (const name of this.#known.keys()) this.#set(name, NOT_SERVING);
    this.#watchers.clear();
  }

  /** The service's functions. */
  implementation(ended: Promise<void>): UntypedServiceImplementation {
    return {
      check: (call: ServerUnaryCall<Query, State>, done: sendUnaryData<State>) => {
        const known = this.#known.get(call.request.service);
        if (known) done(null, { status: known });
        else done({ code: status.NOT_FOUND, details: `unknown service ${call.request.service}` });
      },
      watch: (call: ServerWritableStream<Query, State>) => {
        let said: number | undefined;
        const say = () => {
          const now = this.#known.get(call.request.service) ?? SERVICE_UNKNOWN;
          if (now !== said) call.write({ status: now });
          said = now;
        };
        this.#watchers.add(say);
        call.on("cancelled", () => this.#watchers.delete(say));
        void ended.then(() => call.end());
        say();
      },
    };
  }

  #set(name: string, value: number): void {
    this.#known.set(name, value);
    for (const watcher of this.#watchers) watcher();
  }
}
