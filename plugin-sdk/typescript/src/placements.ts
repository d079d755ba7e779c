/** Placements of pod groups: the author's sets of nodes as bitmaps, the author's scores packed. */

import { ask, atOnce, failure, packStatus, then } from "./asking.ts";
import { ContractError, describe, invalid } from "./errors.ts";
import { scoresGiven } from "./finding.ts";
import type * as pb from "./generated/berth/plugin/v1/placement.ts";
import { groupOf } from "./groups.ts";
import type { Nodes } from "./nodes.ts";
import {
  type Maybe,
  type Placements,
  type PodGroup,
  type ProposedPlacement,
  SKIP,
  SUCCESS,
  statusOf,
} from "./outcomes.ts";
import { packBits, packScores, unpackBits } from "./packing.ts";
import { headOf, type Session } from "./session.ts";

/** Say which sets of nodes the group may go to. */
export function generatePlacements(
  session: Session,
  request: pb.GeneratePlacementsRequest,
  deadline: number,
): Maybe<pb.GeneratePlacementsResponse> {
  const call = headOf(request);
  const { plugin, mirror } = session;
  return then(
    () => session.catchUp(call, deadline),
    () => {
      const [pod, nodes] = [session.pod(call.pod), session.nodes(call, request.candidates)];
      const { generation } = mirror;
      try {
        const answer = ask("generatePlacements", () => {
          const given = plugin.generatePlacements
            ? plugin.generatePlacements(groupOf(request.group), pod, nodes)
            : SKIP;
          return atOnce("generatePlacements", given);
        });
        if (!(answer instanceof Map))
          return { generation, status: packStatus(statusOf(answer)), placements: [] };
        return { generation, status: packStatus(SUCCESS), placements: packPlacements(answer, nodes) };
      } catch (error) {
        return { generation, status: failure(plugin, error), placements: [] };
      }
    },
  );
}

/** Score the placements in which the group fits. */
export function scorePlacements(
  session: Session,
  request: pb.ScorePlacementsRequest,
  deadline: number,
): Maybe<pb.ScorePlacementsResponse> {
  const call = headOf(request);
  const { plugin, mirror } = session;
  return then(
    () => session.catchUp(call, deadline),
    () => {
      const [pod, nodes, group] = [session.pod(call.pod), session.nodes(call), groupOf(request.group)];
      const proposed = request.proposed.map((each) => proposedIn(each, group, nodes.length));
      const { generation } = mirror;
      try {
        const answer = ask("scorePlacements", () =>
          atOnce("scorePlacements", plugin.scorePlacements?.(group, pod, nodes, proposed)),
        );
        const scores = scoresGiven(plugin, "scorePlacements", answer);
        const packed = scores && packScores(scores, proposed.length);
        return { generation, status: packStatus(packed ? SUCCESS : SKIP), scores: packed };
      } catch (error) {
        return { generation, status: failure(plugin, error), scores: undefined };
      }
    },
  );
}

/**
 * Each set as a bitmap, without what was not asked about; an empty one is none.
 * @throws ContractError if a set is not for this many nodes, or has no name.
 */
function packPlacements(placements: Placements, { length, candidates }: Nodes): pb.Placement[] {
  return [...placements].flatMap(([name, chosen]) => {
    if (typeof name !== "string" || !name || chosen?.length !== length) {
      throw new ContractError(
        `placement ${JSON.stringify(name)}: expected a name and ${length} nodes, got ${chosen?.length}`,
      );
    }
    const asked = Array.from(chosen, (each, i) => Boolean(each && (candidates?.[i] ?? true)));
    return asked.includes(true) ? [{ name, bitmap: packBits(asked) }] : [];
  });
}

/** @throws CallError if the message is not about this group and this many nodes. */
function proposedIn(message: pb.ProposedPlacement, group: PodGroup, count: number): ProposedPlacement {
  const { placement, podIndices, nodeIndices } = message;
  if (podIndices.length !== nodeIndices.length)
    throw invalid(`proposed: ${podIndices.length} pods on ${nodeIndices.length} nodes`);
  const assignments = podIndices.map((index, i) => {
    const [pod, node] = [group.pods[index], nodeIndices[i] as number];
    if (!pod || node >= count) {
      throw invalid(`proposed: pod ${index} of ${group.pods.length} on node ${node} of ${count}`);
    }
    return [pod, node] as const;
  });
  try {
    const nodes = unpackBits(placement?.bitmap ?? new Uint8Array(), count);
    return { name: placement?.name ?? "", nodes, assignments };
  } catch (error) {
    throw invalid(`proposed: ${describe(error)}`);
  }
}
