"""The plugin's extension points."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.pacing import paced
from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.handle import Handle
from berth.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    MaybeAwaitable,
    PreFilterPlugin,
    PreFilterResult,
    ReasonCodes,
)
from berth.framework.status import SKIP, Status, failed, unresolvable, unschedulable
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import PodFeature
from berth.objects.pods.pod_volumes import claim_use, each_placed_volume
from berth.objects.steps import Steps
from berth.objects.volumes.csi_migration import CsiVolume, migration_of
from berth.plugins.in_tree import InTreePlugin, all_pass
from berth.plugins.node_volume_limits.attached_volumes import AttachedVolumes
from berth.plugins.node_volume_limits.driver_columns import ABSENT, DriverColumns
from berth.plugins.node_volume_limits.hints import registrations
from berth.plugins.node_volume_limits.resolving import Broken, Missing, Resolver
from berth.plugins.pod_volumes import volumes_cache_key, volumes_signature
from berth.snapshot.columns.growing import Mask
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

EXCEEDED = unschedulable("node(s) exceed max volume count")


class CountedVolumes(msgspec.Struct):
    """The pod's volumes that a driver counts, or what is wrong with its claims; and the verdicts so far.

    `verdicts` holds what the codes 1, 2, ... stand for.
    """

    volumes: tuple[CsiVolume, ...]
    verdict: Status | None
    verdicts: list[Status]

    def code(self, status: Status) -> int:
        """The code of a verdict."""
        if status not in self.verdicts:
            self.verdicts.append(status)
        return self.verdicts.index(status) + 1


class NodeVolumeLimits(InTreePlugin, PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Turn down nodes that could not attach the pod's volumes besides those they have."""

    concerns = frozenset({PodFeature.VOLUMES})

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resolver = Resolver(handle.listers)
        self._attached = AttachedVolumes(handle.listers)
        self._drivers = DriverColumns(handle.listers.csi_nodes)
        self._scaling = handle.feature_enabled("VolumeLimitScaling")

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[PreFilterResult]:
        """Find the volumes; a pod without claims and without volumes that drivers took over is skipped."""
        del nodes
        return paced(state.meter, self.name, self._found(state, pod))

    def _found(self, state: CycleState, pod: Pod) -> Steps[PreFilterResult]:
        if not any(migration_of(v) or claim_use(pod, v) for v in pod.spec.volumes):
            return PreFilterResult(SKIP)
        yield
        counted = dict[CsiVolume | Missing | Broken | None, None]()
        for volume in each_placed_volume(pod):
            counted[self._resolver.counted(volume)] = None
            yield
        wrong = next((c for c in counted if isinstance(c, Missing | Broken)), None)
        verdict = None
        if wrong is not None:
            verdict = failed(wrong.text) if isinstance(wrong, Broken) else unresolvable(wrong.text)
        volumes = tuple([c for c in counted if isinstance(c, CsiVolume)])
        state.write(CountedVolumes, CountedVolumes(volumes, verdict, []))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """Answer a code for what is wrong with the pod's claims, or where a limit would be exceeded."""
        del pod
        wanted = state.read(CountedVolumes)
        if wanted.verdict is not None:
            return np.full(len(nodes), wanted.code(wanted.verdict), dtype=np.uint8)
        if not wanted.volumes:
            return all_pass(len(nodes))
        self._drivers.follow(nodes.whole)
        self._attached.follow(nodes.whole)
        codes = self._codes(wanted, nodes.whole)[nodes.rows]
        if nodes.own_pods:
            for i in nodes.unsure((codes > 0) | self._holding(wanted, nodes)).tolist():
                codes[i] = self._code_of_one(wanted, nodes, i, nodes.pods[i].values())
        return self._without_driver(wanted, nodes, codes) if self._scaling else codes

    def filter_status(self, state: CycleState, code: int) -> Status:
        """The verdict that the code stands for in this cycle."""
        return state.read(CountedVolumes).verdicts[code - 1].from_plugin(self.name)

    def sign_pod(self, pod: Pod) -> Hashable:
        """The volumes."""
        return volumes_signature(pod)

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable | None:
        """Nothing for pods without claims and disks."""
        del state, nodes
        return volumes_cache_key(pod)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """All that raises a limit, detaches a volume or brings a claim."""
        return registrations()

    def _codes(self, wanted: CountedVolumes, nodes: Snapshot) -> ReasonCodes:
        n = len(nodes)
        exceeded = np.zeros(n, dtype=bool)
        for driver in dict.fromkeys(volume.driver for volume in wanted.volumes):
            limit = self._drivers.limit(driver)
            if limit is not None:
                new = np.zeros(n, dtype=np.int64)
                for volume in wanted.volumes:
                    if volume.driver == driver:
                        new += 1
                        new[list(self._attached.rows_with(volume))] -= 1
                over = self._attached.used(driver, n) + new > limit
                exceeded |= (limit >= 0) & (new > 0) & over
        codes = exceeded * np.uint8(wanted.code(EXCEEDED))
        for broken in self._attached.broken():
            assert isinstance(broken, Broken)
            rows = list(self._attached.rows_with(broken))
            codes[[r for r in rows if self._drivers.limited[r]]] = wanted.code(failed(broken.text))
        return codes

    def _holding(self, wanted: CountedVolumes, nodes: Snapshot) -> Mask:
        """Where placed pods use a wanted volume: it counts as new once they are gone."""
        holding = np.zeros(len(nodes.whole), dtype=bool)
        for volume in wanted.volumes:
            holding[list(self._attached.rows_with(volume))] = True
        here: Mask = holding[nodes.rows]
        return here

    def _code_of_one(self, wanted: CountedVolumes, nodes: Snapshot, i: int, pods: Iterable[PodInfo]) -> int:
        """The code of a node whose pods are not what the columns tell."""
        row = nodes.whole.row_of[nodes.names[i]]
        if not self._drivers.limited[row]:
            return 0
        held: set[CsiVolume] = set()
        for counted in (self._resolver.counted(v) for info in pods for v in info.volumes):
            if isinstance(counted, Broken):
                return wanted.code(failed(counted.text))
            if isinstance(counted, CsiVolume):
                held.add(counted)
        new = Counter(volume.driver for volume in wanted.volumes if volume not in held)
        held.update(self._attached.attached_to(row))
        used = Counter(volume.driver for volume in held)
        for driver, count in new.items():
            limit = self._drivers.limit(driver)
            if limit is not None and 0 <= limit[row] < used[driver] + count:
                return wanted.code(EXCEEDED)
        return 0

    def _without_driver(self, wanted: CountedVolumes, nodes: Snapshot, codes: ReasonCodes) -> ReasonCodes:
        for driver, lacking in self._lacking(wanted, nodes.whole):
            status = unschedulable(f"{driver} CSI driver is not installed on the node")
            codes = np.where(lacking[nodes.rows], np.uint8(wanted.code(status)), codes)
        return codes

    def _lacking(self, wanted: CountedVolumes, nodes: Snapshot) -> Iterator[tuple[str, Mask]]:
        """The drivers that no pod must do without, each with the nodes that lack it; the first comes last."""
        for driver in reversed(dict.fromkeys(volume.driver for volume in wanted.volumes)):
            described = self.handle.listers.csi_drivers.get(driver)
            if described is not None and described.spec.prevent_pod_scheduling_if_missing:
                column = self._drivers.limit(driver)
                yield driver, np.ones(len(nodes), dtype=bool) if column is None else column == ABSENT
