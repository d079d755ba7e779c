/** Filter, Score and FilterScore: the author's answers for all nodes, packed. */

import { ask, atOnce, failure, packStatus, then } from "./asking.ts";
import type { Candidates } from "./candidates.ts";
import { ContractError } from "./errors.ts";
import type {
  FilterRequest,
  FilterResponse,
  FilterScoreRequest,
  FilterScoreResponse,
  ScoreRequest,
  ScoreResponse,
} from "./generated/berth/plugin/v1/scheduling.ts";
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
  /** The nodes that are left to score, undefined if none is to be. */
  readonly passing: Candidates | undefined;
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
    () => scored(session, session.pod(call.pod), session.candidates(call, request.candidates)),
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
      const score = passing?.some ? scored(session, session.pod(headOf(request).pod), passing) : undefined;
      return { filter: response, score };
    },
  );
}

/** PreFilter's verdict on the pod; thrown failures are ContractErrors. */
export function preFilter(plugin: Plugin, pod: Pod): Maybe<Status> {
  return then(() => ask("preFilter", () => plugin.preFilter?.(pod)), statusOf);
}

/**
 * A code for each entry, by whichever form the author chose.
 * @throws ContractError if what came back can't be sent.
 */
export function nodeVerdicts(plugin: Plugin, pod: Pod, asked: Candidates): Verdicts {
  if (plugin.filterNodes) {
    const nodes = asked.nodes();
    const answer = ask("filterNodes", () => atOnce("filterNodes", plugin.filterNodes?.(pod, nodes)));
    const { codes, reasons } = checkedVerdicts(answer, nodes.length);
    return { codes: asked.picked(codes, "codes"), reasons };
  }
  if (plugin.filter) return ask("filter", () => filterEach(plugin, pod, asked)) as Verdicts;
  return { codes: new Uint8Array(asked.length), reasons: [] };
}

function filtered(session: Session, request: FilterRequest, deadline: number): Maybe<Filtered> {
  const call = headOf(request);
  return then(
    () => session.catchUp(call, deadline),
    () => {
      const pod = session.pod(call.pod);
      return then(
        () => preFilter(session.plugin, pod),
        (status) => verdictOn(session, pod, status, session.candidates(call, request.candidates)),
        (error) => ({ response: refusal(session, error), passing: undefined }),
      );
    },
  );
}

function verdictOn(session: Session, pod: Pod, status: Status, asked: Candidates): Filtered {
  const response: FilterResponse = {
    generation: session.mirror.generation,
    status: packStatus(status),
    verdicts: undefined,
  };
  if (status.code !== Code.SUCCESS)
    return { response, passing: status.code === Code.SKIP ? asked : undefined };
  const verdicts = nodeVerdicts(session.plugin, pod, asked);
  response.verdicts = packVerdicts(verdicts, asked.asked);
  return { response, passing: asked.narrowed(passes(session, verdicts, asked.asked)) };
}

function passes(session: Session, { codes }: Verdicts, candidates: Mask | undefined): Mask {
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

function filterEach(plugin: Plugin, pod: Pod, asked: Candidates): Verdicts {
  const codes = new Uint8Array(asked.length);
  const table = new ReasonTable();
  let last: unknown;
  let row = 0;
  asked.each((entry, node) => {
    const answer = atOnce("filter", plugin.filter?.(pod, node));
    if (answer === undefined || answer === null) return;
    if (answer !== last) {
      // Most nodes are turned down for the reason of the one before.
      [last, row] = [answer, table.row(answer)];
    }
    codes[entry] = row;
  });
  return { codes, reasons: table.reasons };
}

function scored(session: Session, pod: Pod, asked: Candidates): ScoreResponse {
  const { plugin, mirror } = session;
  const { generation } = mirror;
  try {
    const given = nodeScores(plugin, pod, asked);
    const scores = given && packScores(given, asked.length, asked.asked);
    return { generation, status: packStatus(scores ? SUCCESS : SKIP), scores };
  } catch (error) {
    return { generation, status: failure(plugin, error), scores: undefined };
  }
}

/** A score for each entry, by whichever form the author chose; undefined for no opinion. */
function nodeScores(plugin: Plugin, pod: Pod, asked: Candidates): Scores | undefined {
  if (!plugin.scoreNodes)
    return scoresGiven(
      plugin,
      "score",
      ask("score", () => scoreEach(plugin, pod, asked)),
    );
  const answer = ask("scoreNodes", () => atOnce("scoreNodes", plugin.scoreNodes?.(pod, asked.nodes())));
  const scores = scoresGiven(plugin, "scoreNodes", answer);
  return scores && { ...scores, points: asked.picked(scores.points, "scores") };
}

/**
 * What the author's function scored, with its normalization; undefined for no opinion.
 * @throws ContractError if it is something else.
 */
export function scoresGiven(plugin: Plugin, name: string, answer: unknown): Scores | undefined {
  if (answer === undefined || answer === null) return undefined;
  if (typeof answer !== "object" || !("length" in answer || "points" in answer)) {
    throw new ContractError(`${name}: expected integers or Scores`);
  }
  const scores = answer as Points | Scores;
  return isScores(scores)
    ? scores
    : { points: scores, normalization: plugin.normalization ?? Normalization.NONE };
}

function scoreEach(plugin: Plugin, pod: Pod, asked: Candidates): number[] | undefined {
  if (!plugin.score) return undefined;
  const points = new Array<number>(asked.length).fill(0);
  asked.each((entry, node) => {
    points[entry] = atOnce("score", plugin.score?.(pod, node) as number);
  });
  return points;
}
