/**
 * SchedulingService: a pod goes to nodes whose label has the value that its own label of that key has.
 *
 * Nodes without the label are open to all pods; nodes with the pod's own value are better.
 */

import { labelsOf } from "./held.js";
import { invalid, precondition } from "./session.js";

const PASSES = 0;
/** Verdicts are rows of the reason table, counted from 1. */
const OTHER_VALUE = 1;
const BEST = 100;
const SUCCESS = { code: "CODE_SUCCESS" };
const REASONS = [
  { code: "CODE_UNSCHEDULABLE_AND_UNRESOLVABLE", text: "node(s) had another value of the pod's label" },
];

export function scheduling(session) {
  const method = (answerOf) => async (call, reply) => {
    const caller = new AbortController();
    call.on("cancelled", () => caller.abort());
    try {
      reply(null, answerOf(await answer(session, call.request, caller.signal)));
    } catch (error) {
      reply(error);
    }
  };
  return {
    Filter: method(filterOf),
    Score: method(scoreOf),
    FilterScore: method((found) => ({
      filter: filterOf(found),
      ...(found.anyPasses && { score: scoreOf(found) }),
    })),
  };
}

/** What is found for each node of the generation. */
async function answer(session, { call, candidates }, signal) {
  if (!call) throw invalid("a request without a head");
  session.labelOf(call.profile);
  const { nodes, generation } = await session.stateFor(call, signal);
  const label = session.labelOf(call.profile);
  const wanted = podLabels(call.pod).get(label);
  const values = nodes.map(({ labels }) => labels.get(label));
  const verdicts = values.map((value) => (value === undefined || value === wanted ? PASSES : OTHER_VALUE));
  const scores = values.map((value) => (value !== undefined && value === wanted ? BEST : 0));
  const asked = askedAbout(candidates, nodes.length);
  return { generation, verdicts, scores, anyPasses: verdicts.some((code, i) => code === PASSES && asked(i)) };
}

/** Reads the pod. None is kept: the host sends it again where a call came without it. */
function podLabels(pod) {
  if (!pod?._object) throw precondition("POD_UNKNOWN", "the pod's object is needed");
  try {
    return labelsOf(pod.object);
  } catch (error) {
    throw invalid(`the pod: ${error.message}`);
  }
}

/** Whether a node is asked about, by its index; without a bitmap all are. */
function askedAbout(candidates, count) {
  if (!candidates) return () => true;
  if (candidates.bitmap.length !== Math.ceil(count / 8))
    throw invalid("a bitmap for another number of nodes");
  return (index) => ((candidates.bitmap[index >> 3] >> (index & 7)) & 1) === 1;
}

const filterOf = ({ generation, verdicts }) => ({
  generation,
  status: SUCCESS,
  verdicts: { each: Buffer.from(verdicts), reasons: REASONS },
});

const scoreOf = ({ generation, scores }) => ({
  generation,
  status: SUCCESS,
  scores: { uint8: Buffer.from(scores), normalization: "NORMALIZATION_NONE" },
});
