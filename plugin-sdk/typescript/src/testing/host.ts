/** A host for tests: it speaks the scheduler's side of the protocol and checks what comes back. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, type ClientDuplexStream, credentials, Metadata } from "@grpc/grpc-js";
import type { Call, PodRef, Status as StatusMessage } from "../generated/berth/plugin/v1/common.ts";
import {
  GroupServiceService as Groups,
  type PlacementFeasibleResponse,
  type PodGroupPostFilterResponse,
} from "../generated/berth/plugin/v1/group.ts";
import {
  type ConfigureResponse,
  type HandshakeResponse,
  IdentityServiceService as Identity,
} from "../generated/berth/plugin/v1/identity.ts";
import {
  type GeneratePlacementsResponse,
  PlacementServiceService as Placement,
  type PodGroup,
  type ScorePlacementsResponse,
} from "../generated/berth/plugin/v1/placement.ts";
import {
  QueueingServiceService as Queueing,
  type QueueingHintsResponse,
  type SortKeysResponse,
} from "../generated/berth/plugin/v1/queueing.ts";
import { SchedulingServiceService as Scheduling } from "../generated/berth/plugin/v1/scheduling.ts";
import type * as pb from "../generated/berth/plugin/v1/scheduling.ts";
import {
  StateServiceService,
  type SyncRequest,
  type SyncResponse,
} from "../generated/berth/plugin/v1/state.ts";
import { setLevel } from "../log.ts";
import type { Node, Pod } from "../objects.ts";
import {
  type ClusterEvent,
  Code,
  type CycleOutcome,
  type PlacementProgress,
  PodStage,
  type Reason,
  type Status,
} from "../outcomes.ts";
import { packBits, packVerdicts, ReasonTable, unpackBits, unpackScores, unpackVerdicts } from "../packing.ts";
import type { Plugin } from "../plugin.ts";
import { Server } from "../serving.ts";
import type { Tracing } from "../tracing.ts";
import { Cluster, encode } from "./cluster.ts";

const TIMEOUT_MILLISECONDS = 10_000;

const MAX_ALONE = 32;

/** The plugin answered with a status that is no success. */
export class Refused extends Error {
  readonly status: Status;

  constructor(status: Status) {
    super(`code ${status.code}: ${status.reasons.join("; ")}`);
    this.status = status;
  }
}

/** Filter's answer: the pod's status, and the reason of every node that was turned down, by name. */
export interface Verdict {
  readonly status: Status;
  readonly rejected: ReadonlyMap<string, Reason>;
  readonly passing: readonly string[];
}

/** Both answers. */
export interface Scored extends Verdict {
  readonly scores: Record<string, number> | undefined;
}

/** A node with pods simulated as removed from it and added to it. */
export interface Simulated {
  readonly node: string;
  readonly without?: readonly Pod[];
  readonly with?: readonly Pod[];
}

/** How a test runs its plugin. */
export interface RunOptions {
  readonly profile?: string;
  readonly arguments?: object;
  readonly tracing?: Tracing;
}

type Method = {
  path: string;
  requestSerialize: (value: never) => Buffer;
  responseDeserialize: (data: Buffer) => unknown;
};

/** One connection to a plugin, with a cluster of its own to show it; what changed in the cluster is sent first. */
export class Host implements AsyncDisposable {
  readonly cluster = new Cluster();
  /** Where the plugin is served. */
  readonly address: string;
  readonly profile: string;
  readonly metadata = new Metadata();
  epoch: string;
  /** Whether nodes that are asked about are listed by their indices, not by a bitmap. */
  listed = false;
  /** Whether no node is asked about alone after all were asked about together: for plugins that count their calls. */
  once = false;
  #needsFeasible = false;
  readonly client: Client;
  readonly #attempts = new Map<string, number>();
  readonly #answers: SyncResponse[] = [];
  readonly #end: () => Promise<void>;
  #stream: ClientDuplexStream<SyncRequest, SyncResponse> | undefined;
  #wake: () => void = () => undefined;

  constructor(address: string, profile = "default-scheduler", end = async () => undefined as void) {
    this.address = address;
    this.profile = profile;
    this.epoch = randomUUID();
    this.client = new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
    this.#end = end;
  }

  /** Shake hands, configure the profile and transfer the cluster. */
  async connect(given?: object): Promise<HandshakeResponse> {
    const answer = await this.handshake();
    assert.deepEqual(await this.configure(given), []);
    await this.sync();
    return answer;
  }

  /** Hang up, and end the plugin if this host began it. */
  async close(): Promise<void> {
    this.#stream?.cancel();
    this.client.close();
    await this.#end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The plugin's introduction. */
  async handshake(): Promise<HandshakeResponse> {
    const said = { hostName: "testing", hostVersion: "1", supportedVersions: [1] };
    const answer = await this.ask<HandshakeResponse>(Identity.handshake, said);
    this.#needsFeasible = answer.capabilities?.scoreNeedsFeasible ?? false;
    return answer;
  }

  /** Configure the profile, or its shadow; the plugin's errors. */
  async configure(given?: object, { shadow = false } = {}): Promise<string[]> {
    const { errors } = await this.ask<ConfigureResponse>(Identity.configure, {
      protocolVersion: 1,
      handshakeErrors: [],
      profile: this.profile,
      arguments: given && encode(given),
      removed: false,
      shadow,
    });
    return errors;
  }

  /** Open the Sync stream; what the plugin says it holds. */
  async open(): Promise<{ epoch: string; generation: number }> {
    const { sync } = StateServiceService;
    this.#answers.length = 0;
    this.#stream = this.client.makeBidiStreamRequest(
      sync.path,
      sync.requestSerialize,
      sync.responseDeserialize,
    );
    this.#stream.on("data", (answer) => {
      this.#answers.push(answer);
      this.#wake();
    });
    this.#stream.on("error", () => undefined);
    const { body } = await this.#next();
    assert(body?.$case === "held");
    return body.value;
  }

  /** Open the stream and transfer everything. */
  async sync(): Promise<void> {
    await this.open();
    for (const message of this.cluster.transfer(this.epoch)) this.#stream?.write(message);
    await this.#acknowledged();
  }

  /** Send one message of the state stream; the answer to it. */
  async send(body: SyncRequest["body"]): Promise<SyncResponse["body"]> {
    this.#stream?.write({ body });
    return (await this.#next()).body;
  }

  /** Send what changed in the cluster, if anything did. */
  async update(): Promise<void> {
    if (!this.cluster.pending.length) return;
    this.#stream?.write({ body: { $case: "delta", value: this.cluster.step() } });
    await this.#acknowledged();
  }

  /**
   * Let the plugin's clock stand at that time, in milliseconds since the epoch; when its next timer is due, if one is.
   * What is due by then runs first, each timer at its time.
   */
  async setTime(milliseconds: number): Promise<number | undefined> {
    const unixMicros = Math.round(milliseconds * 1000);
    const reached = await this.send({ $case: "time", value: { unixMicros } });
    assert(reached?.$case === "timeReached" && reached.value.unixMicros === unixMicros);
    const { wakeAtUnixMicros } = reached.value;
    return wakeAtUnixMicros === undefined ? undefined : wakeAtUnixMicros / 1000;
  }

  /** The head of a request about this pod, at the present generation. */
  call(pod: Pod): Call {
    const { uid, namespace, name } = pod.metadata;
    const attempt = this.#attempts.get(uid) ?? 1;
    const { epoch, profile } = this;
    const generation = this.cluster.generation;
    return {
      epoch,
      generation,
      profile,
      deltas: [],
      pod: { uid, namespace, name, attempt, object: encode(pod) },
    };
  }

  /**
   * Which nodes are turned down, and why. It asks about the nodes together, and about each alone as the scheduler
   * does once a node has changed.
   * @throws Refused where the plugin failed; AssertionError where a node's verdict is another one alone.
   */
  async filter(pod: Pod, candidates?: readonly string[]): Promise<Verdict> {
    await this.update();
    const together = await this.#filter(pod, candidates);
    for (const name of this.#alone(candidates)) {
      assert.deepEqual(about(name, await this.#filter(pod, [name])), about(name, together), alone(name));
    }
    return together;
  }

  /** What Filter says of the pod, a failure too. */
  async filterStatus(pod: Pod): Promise<Status> {
    await this.update();
    const request = { call: this.call(pod), candidates: undefined };
    return statusIn((await this.ask<pb.FilterResponse>(Scheduling.filter, request)).status);
  }

  async #filter(pod: Pod, candidates?: readonly string[]): Promise<Verdict> {
    const request = { call: this.call(pod), candidates: this.#candidates(candidates) };
    return this.#verdict(await this.ask<pb.FilterResponse>(Scheduling.filter, request), candidates);
  }

  /**
   * The raw score of each node asked about; undefined if the plugin has no opinion.
   * @throws as filter; a plugin with scoreNeedsFeasible is asked about no node alone.
   */
  async score(pod: Pod, candidates?: readonly string[]): Promise<Record<string, number> | undefined> {
    await this.update();
    const together = await this.#score(pod, candidates);
    for (const name of together && !this.#needsFeasible ? this.#alone(candidates) : []) {
      assert.equal((await this.#score(pod, [name]))?.[name], together?.[name], alone(name));
    }
    return together;
  }

  async #score(pod: Pod, candidates?: readonly string[]): Promise<Record<string, number> | undefined> {
    const request = { call: this.call(pod), candidates: this.#candidates(candidates) };
    const response = await this.ask<pb.ScoreResponse>(Scheduling.score, request);
    return this.#scores(response, candidates);
  }

  /**
   * Both in one round trip; scores are those of the nodes that pass.
   * @throws as filter.
   */
  async filterScore(pod: Pod, candidates?: readonly string[]): Promise<Scored> {
    await this.update();
    const together = await this.#filterScore(pod, candidates);
    for (const name of this.#alone(candidates)) {
      const one = await this.#filterScore(pod, [name]);
      assert.deepEqual(about(name, one), about(name, together), alone(name));
      assert.equal(one.scores?.[name], together.scores?.[name], alone(name));
    }
    return together;
  }

  async #filterScore(pod: Pod, candidates?: readonly string[]): Promise<Scored> {
    const request = { call: this.call(pod), candidates: this.#candidates(candidates) };
    const { filter, score } = await this.ask<pb.FilterScoreResponse>(Scheduling.filterScore, request);
    assert(filter);
    const verdict = this.#verdict(filter, candidates);
    return { ...verdict, scores: score && this.#scores(score, candidates, verdict.passing) };
  }

  /** For each simulated node, why it is turned down; undefined where it passes. */
  async filterOverlays(pod: Pod, ...simulated: Simulated[]): Promise<(Reason | undefined)[]> {
    await this.update();
    const overlays = simulated.map((each) => ({
      nodeIndex: this.cluster.names.indexOf(each.node),
      removedPodUids: (each.without ?? []).map((gone) => gone.metadata.uid),
      addedPods: (each.with ?? []).map((added) => ({
        uid: added.metadata.uid,
        nodeName: each.node,
        stage: PodStage.NOMINATED,
        object: encode(added),
        attempt: 0,
      })),
    }));
    const response = await this.ask<pb.FilterOverlaysResponse>(Scheduling.filterOverlays, {
      call: this.call(pod),
      overlays,
    });
    succeeded(response.status);
    const { codes, reasons } = unpackVerdicts(response.verdicts, overlays.length);
    return [...codes].map((code) => (code ? reasons[code - 1] : undefined));
  }

  /** Whether the pod may enter the queue. */
  async preEnqueue(pod: Pod): Promise<Status> {
    const response = await this.ask<pb.PreEnqueueResponse>(Scheduling.preEnqueue, { call: this.call(pod) });
    return statusIn(response.status);
  }

  /** What the plugin makes of a pod that these nodes were the reason for not placing. */
  async postFilter(pod: Pod, rejected: ReadonlyMap<string, Reason>): Promise<pb.PostFilterResponse> {
    await this.update();
    const table = new ReasonTable();
    const codes = Uint8Array.from(this.cluster.names, (name) => {
      const reason = rejected.get(name);
      return reason ? table.code(reason) : 0;
    });
    const verdicts = packVerdicts({ codes, reasons: table.reasons });
    return this.ask(Scheduling.postFilter, { call: this.call(pod), verdicts });
  }

  /**
   * Reserve, as the pod's present attempt.
   * @throws Refused if the plugin says no.
   */
  async reserve(pod: Pod, nodeName: string): Promise<pb.ReserveResponse> {
    const response = await this.#chosen<pb.ReserveResponse>(Scheduling.reserve, pod, nodeName);
    succeeded(response.status);
    return response;
  }

  /** Take the attempt back; the next one has a new number. */
  async unreserve(pod: Pod, nodeName: string): Promise<void> {
    await this.#chosen(Scheduling.unreserve, pod, nodeName);
    this.#attempts.set(pod.metadata.uid, (this.#attempts.get(pod.metadata.uid) ?? 1) + 1);
  }

  /** The plugin's answer at Permit. */
  permit(pod: Pod, nodeName: string): Promise<pb.PermitResponse> {
    return this.#chosen(Scheduling.permit, pod, nodeName);
  }

  /**
   * The metadata that the plugin wants merged into the pod, empty if nothing.
   * @throws Refused if the plugin says no.
   */
  async preBind(pod: Pod, nodeName: string): Promise<Record<string, unknown>> {
    const response = await this.#chosen<pb.PreBindResponse>(Scheduling.preBind, pod, nodeName);
    succeeded(response.status);
    return JSON.parse(response.metadataPatch?.toString() ?? "{}");
  }

  /** Whether the plugin wrote the binding. */
  async bind(pod: Pod, nodeName: string, annotations: Record<string, string> = {}): Promise<Status> {
    await this.update();
    const request = { call: this.call(pod), nodeName, annotations };
    return statusIn((await this.ask<pb.BindResponse>(Scheduling.bind, request)).status);
  }

  /** Tell of the binding. */
  async postBind(pod: Pod, nodeName: string): Promise<void> {
    await this.#chosen(Scheduling.postBind, pod, nodeName);
  }

  /** Tell how the attempt ended. */
  async cycleDone(pod: Pod, outcome: CycleOutcome, nodeName?: string): Promise<void> {
    const request = { call: this.call(pod), outcome, nodeName, rejectedByPlugin: false };
    await this.ask(Scheduling.cycleDone, request);
  }

  /** For each event, whether each pod is worth another attempt. */
  async hints(pods: readonly Pod[], ...events: ClusterEvent[]): Promise<boolean[][]> {
    const { hints } = await this.ask<QueueingHintsResponse>(Queueing.queueingHints, {
      profile: this.profile,
      pods: pods.map((pod) => this.call(pod).pod),
      events: events.map(({ resource, action, old, new: now }) => ({
        resource,
        action,
        oldObject: old && Buffer.from(old),
        newObject: now && Buffer.from(now),
      })),
    });
    return hints.map(({ queue }) => {
      if (queue?.$case === "pods") return [...unpackBits(queue.value, pods.length)].map(Boolean);
      return pods.map(() => queue?.$case === "all" && queue.value);
    });
  }

  /** Where these pods stand in the queue; `left` are UIDs of pods that wait no more. */
  async sortKeys(
    pods: readonly Pod[],
    { left = [], anew = false }: { left?: string[]; anew?: boolean } = {},
  ): Promise<number[][]> {
    const { keys } = await this.ask<SortKeysResponse>(Queueing.sortKeys, {
      profile: this.profile,
      pods: pods.map((each) => this.call(each).pod),
      leftUids: left,
      anew,
    });
    return keys.map(({ parts }) => parts);
  }

  /**
   * The names of the nodes in each placement of the group of these pods; undefined if the plugin has no opinion.
   * @throws Refused if the group can go nowhere.
   */
  async generatePlacements(
    group: string,
    pods: readonly [Pod, ...Pod[]],
    candidates?: readonly string[],
  ): Promise<Map<string, string[]> | undefined> {
    await this.update();
    const request = {
      call: this.call(pods[0]),
      group: this.#group(group, pods),
      candidates: candidates && { bitmap: this.#bitmap(candidates), indices: undefined },
    };
    const response = await this.ask<GeneratePlacementsResponse>(Placement.generatePlacements, request);
    if (statusIn(response.status).code === Code.SKIP) return undefined;
    succeeded(response.status);
    const { names } = this.cluster;
    return new Map(
      response.placements.map(({ name, bitmap }) => {
        const chosen = unpackBits(bitmap, names.length);
        return [name, names.filter((_, i) => chosen[i])];
      }),
    );
  }

  /**
   * The raw score of each proposal, which is node names by pod names; undefined if the plugin has no opinion. A
   * proposal's placement are the nodes that it uses.
   */
  async scorePlacements(
    group: string,
    pods: readonly [Pod, ...Pod[]],
    ...proposed: Readonly<Record<string, string>>[]
  ): Promise<number[] | undefined> {
    await this.update();
    const { names } = this.cluster;
    const index = new Map(pods.map((each, i) => [each.metadata.name, i]));
    const request = {
      call: this.call(pods[0]),
      group: this.#group(group, pods),
      proposed: proposed.map((nodes, i) => ({
        placement: { name: `proposal-${i}`, bitmap: this.#bitmap(Object.values(nodes)) },
        podIndices: Object.keys(nodes).map((name) => index.get(name)),
        nodeIndices: Object.values(nodes).map((name) => names.indexOf(name)),
      })),
    };
    const response = await this.ask<ScorePlacementsResponse>(Placement.scorePlacements, request);
    if (statusIn(response.status).code === Code.SKIP) return undefined;
    succeeded(response.status);
    assert(response.scores);
    return unpackScores(response.scores, proposed.length);
  }

  /** What the plugin says of the group of these pods at each number of pods. */
  async placementFeasible(
    group: string,
    pods: readonly [Pod, ...Pod[]],
    ...progress: PlacementProgress[]
  ): Promise<Status[]> {
    const request = { call: this.call(pods[0]), group: this.#group(group, pods), progress };
    const response = await this.ask<PlacementFeasibleResponse>(Groups.placementFeasible, request);
    return response.verdicts.map(statusIn);
  }

  /**
   * The UIDs of the victims of each proposal for the group of these pods.
   * @throws Refused if the plugin has none.
   */
  async podGroupPostFilter(group: string, ...pods: [Pod, ...Pod[]]): Promise<string[][]> {
    await this.update();
    const verdicts = packVerdicts({ codes: new Uint8Array(this.cluster.names.length), reasons: [] });
    const request = { call: this.call(pods[0]), group: this.#group(group, pods), verdicts };
    const response = await this.ask<PodGroupPostFilterResponse>(Groups.podGroupPostFilter, request);
    succeeded(response.status);
    return response.proposals.map(({ victimUids }) => victimUids);
  }

  /** Ask anything, without sending changes first. */
  ask<Response>(method: Method, request: object): Promise<Response> {
    const deadline = Date.now() + TIMEOUT_MILLISECONDS;
    return new Promise((resolve, reject) => {
      this.client.makeUnaryRequest(
        method.path,
        method.requestSerialize as (value: object) => Buffer,
        method.responseDeserialize as (data: Buffer) => Response,
        request,
        this.metadata,
        { deadline },
        (error, response) => (error ? reject(error) : resolve(response as Response)),
      );
    });
  }

  async #chosen<Response>(method: Method, pod: Pod, nodeName: string): Promise<Response> {
    await this.update();
    return this.ask(method, { call: this.call(pod), nodeName });
  }

  async #next(): Promise<SyncResponse> {
    const timer = setTimeout(() => this.#stream?.cancel(), TIMEOUT_MILLISECONDS);
    while (!this.#answers.length) {
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve;
        this.#stream?.once("close", () => reject(new Error("the state stream ended")));
      });
    }
    clearTimeout(timer);
    return this.#answers.shift() as SyncResponse;
  }

  async #acknowledged(): Promise<void> {
    const { body } = await this.#next();
    assert.deepEqual(body, { $case: "ack", value: { generation: this.cluster.generation } });
  }

  #group(name: string, pods: readonly [Pod, ...Pod[]]): PodGroup {
    const refs = pods.map((each) => ({ ...(this.call(each).pod as PodRef), object: undefined }));
    return { namespace: pods[0].metadata.namespace, name, pods: refs };
  }

  #candidates(names: readonly string[] | undefined): pb.Candidates | undefined {
    if (!names) return undefined;
    if (!this.listed) return { bitmap: this.#bitmap(names), indices: undefined };
    const entries = this.#entries(names);
    const indices = Buffer.alloc(4 * entries.length);
    for (const [i, name] of entries.entries()) indices.writeUInt32LE(this.cluster.names.indexOf(name), 4 * i);
    return { bitmap: Buffer.alloc(0), indices };
  }

  /** The node of each entry of an answer's vectors. */
  #entries(asked: readonly string[] | undefined): readonly string[] {
    const { names } = this.cluster;
    return asked && this.listed ? names.filter((name) => asked.includes(name)) : names;
  }

  /** The nodes that are asked about one by one, of all that were asked about. */
  #alone(candidates: readonly string[] | undefined): readonly string[] {
    return this.once ? [] : (candidates ?? this.cluster.names).slice(0, MAX_ALONE);
  }

  #bitmap(names: readonly string[]): Buffer {
    return packBits(this.cluster.names.map((name) => names.includes(name)));
  }

  #verdict(response: pb.FilterResponse, asked?: readonly string[]): Verdict {
    assert.equal(response.generation, this.cluster.generation);
    const status = statusIn(response.status);
    if (status.code === Code.ERROR) throw new Refused(status);
    assert.equal(response.verdicts !== undefined, status.code === Code.SUCCESS);
    const entries = this.#entries(asked);
    const { codes, reasons } = unpackVerdicts(response.verdicts, entries.length);
    const rejected = new Map<string, Reason>();
    for (const [i, name] of entries.entries()) {
      const code = codes[i];
      if (code) rejected.set(name, reasons[code - 1] as Reason);
    }
    const fits = status.code === Code.SUCCESS || status.code === Code.SKIP;
    const named = fits ? (asked ?? entries) : [];
    return { status, rejected, passing: named.filter((name) => !rejected.has(name)) };
  }

  /** The scores of those of the nodes asked about that are wanted, all unless said. */
  #scores(
    response: pb.ScoreResponse,
    asked: readonly string[] | undefined,
    wanted: readonly string[] = asked ?? this.cluster.names,
  ): Record<string, number> | undefined {
    if (statusIn(response.status).code === Code.SKIP) return undefined;
    succeeded(response.status);
    assert(response.scores);
    const entries = this.#entries(asked);
    const points = unpackScores(response.scores, entries.length);
    return Object.fromEntries(wanted.map((name) => [name, points[entries.indexOf(name)] as number]));
  }
}

/** Serve the plugin in this process, on a socket of its own; a host that shows it the nodes. */
export async function running(
  plugin: Plugin,
  nodes: readonly Node[] = [],
  options: RunOptions = {},
): Promise<Host> {
  setLevel("error");
  const folder = await mkdtemp(join(tmpdir(), "berth-"));
  const address = `unix:${join(folder, "plugin.sock")}`;
  const server = new Server(plugin, address, options.tracing && { tracing: options.tracing });
  await server.start();
  const host = new Host(address, options.profile, async () => {
    await server.stop(0);
    await rm(folder, { recursive: true });
  });
  for (const node of nodes) host.cluster.putNode(node);
  try {
    await host.connect(options.arguments);
  } catch (error) {
    await host.close();
    throw error;
  }
  return host;
}

function about(name: string, { status, rejected }: Verdict): [Status, Reason | undefined] {
  return [status, rejected.get(name)];
}

function alone(name: string): string {
  return `${name} has another answer alone than together with the others`;
}

function statusIn(message: StatusMessage | undefined): Status {
  assert(message?.code);
  return message;
}

function succeeded(message: StatusMessage | undefined): void {
  const status = statusIn(message);
  if (status.code !== Code.SUCCESS) throw new Refused(status);
}
