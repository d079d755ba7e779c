/** The calls about one pod: before the queue, when no node is left, and after a node was chosen. */

import { ask, failure, packStatus, tell, then, verdict } from "./asking.ts";
import { duration } from "./capabilities.ts";
import { ContractError, invalid } from "./errors.ts";
import type { Call, Status as StatusMessage } from "./generated/berth/plugin/v1/common.ts";
import type * as pb from "./generated/berth/plugin/v1/scheduling.ts";
import type { Node, Pod } from "./objects.ts";
import {
  Code,
  CycleOutcome,
  type Maybe,
  type MetadataPatch,
  type Nomination,
  SUCCESS,
  statusOf,
  type Wait,
} from "./outcomes.ts";
import { unpackVerdicts } from "./packing.ts";
import { headOf, keyOf, type Session } from "./session.ts";

/** Whether the pod may enter the queue. */
export function preEnqueue(session: Session, request: pb.PreEnqueueRequest): Maybe<pb.PreEnqueueResponse> {
  const pod = session.pod(headOf(request).pod);
  return then(
    () => verdict("preEnqueue", () => session.plugin.preEnqueue?.(pod)),
    (status) => ({ status }),
  );
}

/** Ask for room after no node was left. */
export function postFilter(
  session: Session,
  request: pb.PostFilterRequest,
  deadline: number,
): Maybe<pb.PostFilterResponse> {
  const call = headOf(request);
  return then(
    () => session.catchUp(call, deadline),
    () => {
      const [pod, nodes] = [session.pod(call.pod), session.nodes(call)];
      const verdicts = unpackVerdicts(request.verdicts, nodes.length);
      return then<unknown, pb.PostFilterResponse>(
        () => ask("postFilter", () => session.plugin.postFilter?.(pod, nodes, verdicts)),
        nominated,
        (error) => ({ status: failure(session.plugin, error), nominatedNodeName: undefined, victimUids: [] }),
      );
    },
  );
}

/** Set aside what the pod will use. */
export function reserve(
  session: Session,
  request: pb.ReserveRequest,
  deadline: number,
): Maybe<pb.ReserveResponse> {
  const { plugin } = session;
  return chosen(
    session,
    request,
    deadline,
    "reserve",
    (pod, node) => plugin.reserve?.(pod, node),
    (status, patch) => ({
      status,
      skipPreBind: !plugin.preBind && !patch,
      metadataPatch: patch,
    }),
  );
}

/** Give it back. */
export function unreserve(session: Session, request: pb.UnreserveRequest): Maybe<pb.UnreserveResponse> {
  const key = keyOf(headOf(request).pod);
  return then(
    () => tell("unreserve", () => session.plugin.unreserve?.(key, request.nodeName)),
    () => ({}),
  );
}

/** Let the pod go on, stop it, or make it wait. */
export function permit(
  session: Session,
  request: pb.PermitRequest,
  deadline: number,
): Maybe<pb.PermitResponse> {
  let timeout: pb.PermitResponse["timeout"];
  const question = (pod: Pod, node: Node) =>
    then(
      () => session.plugin.permit?.(pod, node),
      (answer) => {
        if (!isWait(answer)) return answer;
        timeout = duration(answer.waitSeconds);
        return { code: Code.WAIT, reasons: ["waits at Permit"] };
      },
    );
  return chosen(session, request, deadline, "permit", question, (status) => ({ status, timeout }));
}

/** Prepare the binding. */
export function preBind(
  session: Session,
  request: pb.PreBindRequest,
  deadline: number,
): Maybe<pb.PreBindResponse> {
  const question = (pod: Pod, node: Node) => session.plugin.preBind?.(pod, node);
  return chosen(session, request, deadline, "preBind", question, (status, metadataPatch) => ({
    status,
    metadataPatch,
  }));
}

/** Let the plugin write the binding. */
export function bind(session: Session, request: pb.BindRequest, deadline: number): Maybe<pb.BindResponse> {
  const question = (pod: Pod, node: Node) => session.plugin.bind?.(pod, node, request.annotations);
  return chosen(session, request, deadline, "bind", question, (status) => ({ status }), Code.ERROR);
}

/** Tell of the binding. */
export function postBind(session: Session, request: pb.PostBindRequest): Maybe<pb.PostBindResponse> {
  const key = keyOf(headOf(request).pod);
  return then(
    () => tell("postBind", () => session.plugin.postBind?.(key, request.nodeName)),
    () => ({}),
  );
}

/** Tell what became of the attempt; a pod that will not be asked about again is forgotten. */
export function cycleDone(session: Session, request: pb.CycleDoneRequest): Maybe<pb.CycleDoneResponse> {
  const key = keyOf(headOf(request).pod);
  const { outcome, nodeName } = request;
  if (!Object.values(CycleOutcome).includes(outcome) || !outcome)
    throw invalid(`there is no outcome ${outcome}`);
  return then(
    () => tell("cycleDone", () => session.plugin.cycleDone?.(key, outcome, nodeName)),
    () => {
      if (outcome === CycleOutcome.BOUND || outcome === CycleOutcome.ABORTED) session.forget(key.uid);
      return {};
    },
  );
}

/** Ask about the pod and its node; a node that is gone, and a failure, are answers too. */
function chosen<Response extends { status: StatusMessage | undefined }>(
  session: Session,
  request: { call: Call | undefined; nodeName: string },
  deadline: number,
  name: string,
  question: (pod: Pod, node: Node) => unknown,
  respond: (status: StatusMessage, patch: Buffer | undefined) => Response,
  whenGone: Code = Code.UNSCHEDULABLE,
): Maybe<Response> {
  const call = headOf(request);
  return then(
    () => session.catchUp(call, deadline),
    () => {
      const [pod, node] = [session.pod(call.pod), session.node(request.nodeName)];
      if (!node) return respond({ code: whenGone, reasons: [`node ${request.nodeName} is gone`] }, undefined);
      return then<unknown, Response>(
        () => ask(name, () => question(pod, node)),
        (answer) => {
          if (isPatch(answer)) return respond(packStatus(SUCCESS), mergePatch(answer));
          return respond(packStatus(statusOf(answer)), undefined);
        },
        (error) => respond(failure(session.plugin, error), undefined),
      );
    },
  );
}

function nominated(answer: unknown): pb.PostFilterResponse {
  if (typeof answer !== "object" || answer === null || !("nodeName" in answer)) {
    if (answer === undefined || answer === null)
      throw new ContractError("postFilter: expected a Nomination, or why not");
    return { status: packStatus(statusOf(answer)), nominatedNodeName: undefined, victimUids: [] };
  }
  const { nodeName, victimUids } = answer as Nomination;
  return { status: packStatus(SUCCESS), nominatedNodeName: nodeName, victimUids: [...(victimUids ?? [])] };
}

function isWait(answer: unknown): answer is Wait {
  return typeof answer === "object" && answer !== null && "waitSeconds" in answer;
}

function isPatch(answer: unknown): answer is MetadataPatch {
  return typeof answer === "object" && answer !== null && !("code" in answer);
}

function mergePatch({ annotations, labels, ...rest }: MetadataPatch): Buffer {
  const other = Object.keys(rest);
  if (other.length) throw new ContractError(`a patch has annotations and labels, not ${other.join(", ")}`);
  return Buffer.from(JSON.stringify({ annotations, labels }));
}
