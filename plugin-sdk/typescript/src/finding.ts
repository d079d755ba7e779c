/** Filter, Score and FilterScore: the author's answers for all nodes, packed. */

import { ask, atOnce, failure, packStatus, then } from "./asking.ts";
import { ContractError } from "./errors.ts";
import type {
  FilterRequest,
  FilterResponse,
  FilterScoreRequest,
  FilterScoreResponse,
  ScoreRequest,
  ScoreResponse,
  Scores as ScoresMessage,
} from "./generated/berth/plugin/v1/scheduling.ts";
import { Nodes } from "./nodes.ts";
import type { Pod } from "./objects.ts";
import {
  Code,
  type Maybe,
  Normalization,
  type Points,
  type Scores,
  SKIP,
  SUCCESS,
  type Status,
  statusOf,
  type Verdicts,
} from "./outcomes.ts";
import { checkedVerdicts, isScores, type Mask, packScores, packVerdicts, ReasonTable } from "./packing.ts";
import { answering, type Plugin } from "./plugin.ts";
import { headOf, type Session } from "./session.ts";

interface Filtered {
  readonly response: FilterResponse;
  /** The nodes that are left to score, undefined if none is. */
  readonly passing: Nodes | undefined;
}

/** Answer for the pod, then for all nodes. */
export function filter(session: Session, request: FilterRequest, deadline: number): Maybe<FilterResponse> {
  return then(
    () => filtered(session, request, deadline),
    ({ response }) => response,
  );
}

/** Score all nodes. */
export function score(session: Session, request: ScoreRequest, deadline: number): Maybe<ScoreResponse> {
  const call = headOf(request);
  return then(
    () => session.catchUp(call, deadline),
    () => scored(session, session.pod(call.pod), session.nodes(call, request.candidates)),
  );
}

/** Filter, and score what passed. */
export function filterScore(
  session: Session,
  request: FilterScoreRequest,
  deadline: number,
): Maybe<FilterScoreResponse> {
  return then(
    () => filtered(session, request, deadline),
    ({ response, passing }) => {
      const left = passing && (!passing.candidates || passing.candidates.includes(1));
      const score = left ? scored(session, session.pod(headOf(request).pod), passing) : undefined;
      return { filter: response, score };
    },
  );
}

/** PreFilter's verdict on the pod; thrown failures are ContractErrors. */
export function preFilter(plugin: Plugin, pod: Pod): Maybe<Status> {
  return then(() => ask("preFilter", () => plugin.preFilter?.(pod)), statusOf);
}

/**
 * The verdicts by whichever form the author chose.
 * @throws ContractError if what came back can't be sent.
 */
export function nodeVerdicts(plugin: Plugin, pod: Pod, nodes: Nodes): Verdicts {
  if (plugin.filterNodes) {
    const answer = ask("filterNodes", () => atOnce("filterNodes", plugin.filterNodes?.(pod, nodes)));
    return checkedVerdicts(answer, nodes.length);
  }
  if (plugin.filter) return ask("filter", () => filterEach(plugin, pod, nodes)) as Verdicts;
  return { codes: new Uint8Array(nodes.length), reasons: [] };
}

function filtered(session: Session, request: FilterRequest, deadline: number): Maybe<Filtered> {
  const call = headOf(request);
  return then(
    () => session.catchUp(call, deadline),
    () => {
      const pod = session.pod(call.pod);
      return then(
        () => preFilter(session.plugin, pod),
        (status) => verdictOn(session, pod, status, session.nodes(call, request.candidates)),
        (error) => ({ response: refusal(session, error), passing: undefined }),
      );
    },
  );
}

function verdictOn(session: Session, pod: Pod, status: Status, nodes: Nodes): Filtered {
  const response: FilterResponse = {
    generation: session.mirror.generation,
    status: packStatus(status),
    verdicts: undefined,
  };
  if (status.code !== Code.SUCCESS)
    return { response, passing: status.code === Code.SKIP ? nodes : undefined };
  const verdicts = nodeVerdicts(session.plugin, pod, nodes);
  response.verdicts = packVerdicts(verdicts, nodes.candidates);
  return { response, passing: new Nodes(session.mirror, passes(session, verdicts, nodes)) };
}

function passes(session: Session, { codes }: Verdicts, { candidates }: Nodes): Mask {
  const mask = new Uint8Array(codes.length);
  let asked = 0;
  let passed = 0;
  for (let i = 0; i < mask.length; i++) {
    if (candidates && !candidates[i]) continue;
    asked += 1;
    if (codes[i]) continue;
    mask[i] = 1;
    passed += 1;
  }
  session.meter.verdicts(passed, asked - passed);
  const span = answering.getStore()?.span;
  if (span?.isRecording()) {
    span.setAttributes({ "berth.nodes.passed": passed, "berth.nodes.rejected": asked - passed });
  }
  return mask;
}

function refusal(session: Session, error: unknown): FilterResponse {
  return {
    generation: session.mirror.generation,
    status: failure(session.plugin, error),
    verdicts: undefined,
  };
}

function filterEach(plugin: Plugin, pod: Pod, nodes: Nodes): Verdicts {
  const codes = new Uint8Array(nodes.length);
  const table = new ReasonTable();
  for (const [index, node] of nodes.asked()) {
    const answer = atOnce("filter", plugin.filter?.(pod, node));
    if (answer === undefined || answer === null) continue;
    const { code, reasons } = statusOf(answer);
    if (reasons.length !== 1) throw new ContractError("filter answers nothing, a text or a Reason");
    codes[index] = table.code({ code, text: reasons[0] as string });
  }
  return { codes, reasons: table.reasons };
}

function scored(session: Session, pod: Pod, nodes: Nodes): ScoreResponse {
  const { plugin, mirror } = session;
  const { generation } = mirror;
  try {
    const answer = plugin.scoreNodes
      ? ask("scoreNodes", () => atOnce("scoreNodes", plugin.scoreNodes?.(pod, nodes)))
      : ask("score", () => scoreEach(plugin, pod, nodes));
    const scores = scoresOf(plugin, "scoreNodes", answer, nodes.length, nodes.candidates);
    return { generation, status: packStatus(scores ? SUCCESS : SKIP), scores };
  } catch (error) {
    return { generation, status: failure(plugin, error), scores: undefined };
  }
}

/**
 * What the author's function scored, as the message; undefined for no opinion.
 * @throws ContractError if it can't be sent.
 */
export function scoresOf(
  plugin: Plugin,
  name: string,
  answer: unknown,
  count: number,
  candidates?: Mask,
): ScoresMessage | undefined {
  if (answer === undefined || answer === null) return undefined;
  if (typeof answer !== "object" || !("length" in answer || "points" in answer)) {
    throw new ContractError(`${name}: expected integers or Scores`);
  }
  const given = answer as Points | Scores;
  const normalization = plugin.normalization ?? Normalization.NONE;
  return packScores(isScores(given) ? given : { points: given, normalization }, count, candidates);
}

function scoreEach(plugin: Plugin, pod: Pod, nodes: Nodes): number[] | undefined {
  if (!plugin.score) return undefined;
  const points = new Array<number>(nodes.length).fill(0);
  for (const [index, node] of nodes.asked()) points[index] = atOnce("score", plugin.score(pod, node));
  return points;
}
