/**
 * FilterOverlays: pods removed from and added to the mirror, the author's filter asked, all restored.
 *
 * Columns of the author's own follow, since each change goes through the state hooks.
 */

import { failure, packStatus, then } from "./asking.ts";
import { Candidates } from "./candidates.ts";
import { describe, invalid } from "./errors.ts";
import type {
  FilterOverlaysRequest,
  FilterOverlaysResponse,
  Overlay,
} from "./generated/berth/plugin/v1/scheduling.ts";
import { preFilter, nodeVerdicts } from "./finding.ts";
import { type Mirror, placedPod } from "./mirror.ts";
import type { Node, Pod } from "./objects.ts";
import { Code, type Maybe, type PlacedPod, type Reason, type Verdicts } from "./outcomes.ts";
import { packVerdicts, ReasonTable } from "./packing.ts";
import { headOf, type Session } from "./session.ts";

/** Answer for the pod, then for each overlay's node. */
export function filterOverlays(
  session: Session,
  request: FilterOverlaysRequest,
  deadline: number,
): Maybe<FilterOverlaysResponse> {
  const call = headOf(request);
  return then(
    () => session.catchUp(call, deadline),
    () => {
      const pod = session.pod(call.pod);
      return then<{ code: Code; reasons: readonly string[] }, FilterOverlaysResponse>(
        () => preFilter(session.plugin, pod),
        (status) => {
          const { length } = session.nodes(call);
          const wrong = request.overlays.find((overlay) => overlay.nodeIndex >= length);
          if (wrong) throw invalid(`overlay of node ${wrong.nodeIndex}, of ${length}`);
          const asked = status.code === Code.SUCCESS;
          const verdicts = asked ? packVerdicts(verdictsOn(session, pod, request.overlays)) : undefined;
          return { generation: session.mirror.generation, status: packStatus(status), verdicts };
        },
        (error) => ({
          generation: session.mirror.generation,
          status: failure(session.plugin, error),
          verdicts: undefined,
        }),
      );
    },
  );
}

function verdictsOn(session: Session, pod: Pod, overlays: readonly Overlay[]): Verdicts {
  const codes = new Uint8Array(overlays.length);
  const table = new ReasonTable();
  for (const group of together(overlays, session.plugin.nodeLocal ?? false)) {
    const shown = group.map((i) => overlays[i] as Overlay);
    const asked = new Uint8Array(session.mirror.nodes.length);
    for (const { nodeIndex } of shown) asked[nodeIndex] = 1;
    const found = showing(session.mirror, shown, () =>
      nodeVerdicts(session.plugin, pod, new Candidates(session.mirror, asked)),
    );
    packVerdicts(found, asked);
    for (const i of group) {
      const code = found.codes[(overlays[i] as Overlay).nodeIndex];
      codes[i] = code ? table.code(found.reasons[code - 1] as Reason) : 0;
    }
  }
  return { codes, reasons: table.reasons };
}

/** Which overlays can be shown at once: one by one, unless no node's verdict depends on another. */
function together(overlays: readonly Overlay[], nodeLocal: boolean): number[][] {
  if (!nodeLocal) return overlays.map((_, i) => [i]);
  const groups: number[][] = [];
  const seen = new Map<number, number>();
  for (const [i, { nodeIndex }] of overlays.entries()) {
    const turn = seen.get(nodeIndex) ?? 0;
    seen.set(nodeIndex, turn + 1);
    groups[turn] = [...(groups[turn] ?? []), i];
  }
  return groups;
}

function showing<Result>(mirror: Mirror, overlays: readonly Overlay[], look: () => Result): Result {
  const removed: PlacedPod[] = [];
  const added: PlacedPod[] = [];
  const away = (uid: string) => {
    const placed = mirror.takePod(uid);
    if (placed) removed.push(placed);
  };
  try {
    for (const overlay of overlays) {
      const { name } = (mirror.nodes[overlay.nodeIndex] as Node).metadata;
      for (const uid of overlay.removedPodUids) away(uid);
      for (const upsert of overlay.addedPods) {
        const placed = placedIn(upsert, name);
        away(upsert.uid);
        mirror.putPod(placed);
        added.push(placed);
      }
    }
    return look();
  } finally {
    for (const { uid } of added) mirror.takePod(uid);
    for (const placed of removed) mirror.putPod(placed);
  }
}

function placedIn(upsert: Overlay["addedPods"][number], nodeName: string): PlacedPod {
  try {
    return placedPod(upsert, nodeName);
  } catch (error) {
    throw invalid(`overlay: pod ${upsert.uid}: ${describe(error)}`);
  }
}
