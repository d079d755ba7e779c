/** Pod groups as a whole: whether one may go, and which pods could be evicted for it. */

import { ask, atOnce, failure, packStatus, then } from "./asking.ts";
import { ContractError } from "./errors.ts";
import type * as pb from "./generated/berth/plugin/v1/group.ts";
import type { PodGroup as GroupMessage } from "./generated/berth/plugin/v1/placement.ts";
import { type GroupPreemption, type Maybe, type PodGroup, SUCCESS, statusOf } from "./outcomes.ts";
import { unpackVerdicts } from "./packing.ts";
import { headOf, keyOf, type Session } from "./session.ts";

/** Judge the group by each number of pods. */
export function placementFeasible(
  session: Session,
  request: pb.PlacementFeasibleRequest,
): Maybe<pb.PlacementFeasibleResponse> {
  const { plugin } = session;
  const [pod, group] = [session.pod(headOf(request).pod), groupOf(request.group)];
  const verdicts = request.progress.map((progress) => {
    try {
      const answer = ask("placementFeasible", () =>
        atOnce("placementFeasible", plugin.placementFeasible?.(group, pod, progress)),
      );
      return packStatus(statusOf(answer));
    } catch (error) {
      return failure(plugin, error);
    }
  });
  return { verdicts };
}

/** Ask for victims, after the group was found unschedulable. */
export function podGroupPostFilter(
  session: Session,
  request: pb.PodGroupPostFilterRequest,
  deadline: number,
): Maybe<pb.PodGroupPostFilterResponse> {
  const call = headOf(request);
  const { plugin, mirror } = session;
  return then(
    () => session.catchUp(call, deadline),
    () => {
      const [pod, nodes] = [session.pod(call.pod), session.nodes(call)];
      const verdicts = unpackVerdicts(request.verdicts, nodes.length);
      const { generation } = mirror;
      try {
        const answer = ask("podGroupPostFilter", () => {
          const none = `${plugin.name} makes no room`;
          const group = groupOf(request.group);
          return atOnce(
            "podGroupPostFilter",
            plugin.podGroupPostFilter?.(group, pod, nodes, verdicts) ?? none,
          );
        });
        if (!Array.isArray(answer))
          return { generation, status: packStatus(statusOf(answer)), proposals: [] };
        return { generation, status: packStatus(SUCCESS), proposals: answer.map(packed) };
      } catch (error) {
        return { generation, status: failure(plugin, error), proposals: [] };
      }
    },
  );
}

/** The group that a message is about. */
export function groupOf(message: GroupMessage | undefined): PodGroup {
  const { namespace = "", name = "", pods = [] } = message ?? {};
  return { namespace, name, pods: pods.map(keyOf) };
}

/** @throws ContractError if it names no victim. */
function packed(proposal: GroupPreemption): pb.GroupPreemption {
  if (!proposal?.victimUids?.length) throw new ContractError("a proposal evicts no pod");
  return { victimUids: [...proposal.victimUids] };
}
