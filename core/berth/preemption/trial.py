"""Nodes on which pods are thought away and back, and whether the preemptor fits there then.

All rows are tried at once. Plugins that count over several nodes follow such changes in the cycle state, and
one state holds for one node: with such a plugin at work a trial has one row.

Source: spec/core.md 4.7, 6.4.
"""

from collections.abc import Callable, Sequence

import numpy as np

from berth.framework.attempt import Attempt
from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis
from berth.framework.filtering import run_filters
from berth.framework.interface import PreFilterExtensions
from berth.framework.runtime import Framework
from berth.framework.status import PluginError, Status
from berth.objects.pod import Pod
from berth.snapshot.columns import Mask
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

Follow = Callable[[CycleState, Pod, PodInfo, Snapshot], Status]


def following(framework: Framework, state: CycleState) -> list[PreFilterExtensions]:
    """The plugins at work in this cycle whose state follows pods that come and go."""
    return [plugin for plugin in framework.extensions if plugin.name not in state.skip_filter]


class Trial:
    """A table of nodes without their potential victims, to be changed at will.

    `nominated` are the pods promised to each of its rows.

    Raises (all methods): PluginError where a plugin fails.
    """

    def __init__(
        self,
        framework: Framework,
        attempt: Attempt,
        table: Snapshot,
        nominated: Sequence[Sequence[PodInfo]],
    ) -> None:
        self.table = table
        self._ports = table.ports or []
        self._framework = framework
        self._attempt = attempt
        self._state = attempt.state.clone()
        self._following = following(framework, attempt.state)
        self._nominated = nominated
        self._index = {name: i for i, name in enumerate(table.resource_names)}
        # From the first change on, sums change in plain integers and become columns once for each question.
        self._sums: tuple[list[list[int]], list[list[int]]] | None = None

    def tell_removed(self, info: PodInfo) -> None:
        """Let plugins know of a pod that the table was made without."""
        for plugin in self._following:
            self._tell(plugin.name, "RemovePod", plugin.remove_pod, self._state, info)

    def add(self, i: int, info: PodInfo) -> None:
        """Think the pod back onto row i."""
        self._put(i, info, self._state)

    def remove(self, i: int, info: PodInfo) -> None:
        """Think the pod away from row i."""
        self._take(i, info)
        self.tell_removed(info)

    async def fits(self, among: Mask, diagnosis: Diagnosis) -> Mask:
        """Where the preemptor fits, with and without the pods that were promised the node.

        Shapes: among and result bool (n,), rows of the trial.
        """
        promised = np.array([bool(pods) for pods in self._nominated]) & among
        if not promised.any():
            return await self._pass(self._state, among, diagnosis)
        alive = await self._pass_with_nominated(promised, among, diagnosis)
        again = alive & promised
        if again.any():
            alive &= await self._pass(self._state, again, diagnosis) | ~again
        return alive

    async def _pass_with_nominated(self, promised: Mask, among: Mask, diagnosis: Diagnosis) -> Mask:
        state = self._state.clone()
        coming = [(i, info) for i in np.flatnonzero(promised).tolist() for info in self._nominated[i]]
        taken = {i: self._ports[i].copy() for i, _ in coming}
        added = 0
        try:
            for i, info in coming:
                added += 1
                self._put(i, info, state)
            return await self._pass(state, among, diagnosis)
        finally:
            for i, info in coming[:added]:
                self._take(i, info)
            for i, ports in taken.items():
                self._ports[i] = ports

    async def _pass(self, state: CycleState, among: Mask, diagnosis: Diagnosis) -> Mask:
        self._show()
        attempt = self._attempt.on(self.table, state)
        try:
            return await run_filters(self._framework.plugins.filter, attempt, among, diagnosis)
        finally:
            attempt.record.intervals.clear()

    def _put(self, i: int, info: PodInfo, state: CycleState) -> None:
        self.table.pods[i][info.uid] = info
        if info.ports:
            self._ports[i].update(info.ports)
        self._count(i, info, 1)
        for plugin in self._following:
            self._tell(plugin.name, "AddPod", plugin.add_pod, state, info)

    def _take(self, i: int, info: PodInfo) -> None:
        del self.table.pods[i][info.uid]
        if info.ports:
            # As upstream has it: of two pods with one port, which only bypass the scheduler, either frees it.
            self._ports[i].difference_update(info.ports)
        self._count(i, info, -1)

    def _count(self, i: int, info: PodInfo, sign: int) -> None:
        if self._sums is None:
            self._sums = self.table.requested.T.tolist(), self.table.non_zero_requested.T.tolist()
        requested, non_zero = self._sums[0][i], self._sums[1][i]
        for name, amount in info.requests.items():
            # What no node offers and no placed pod holds has no column: then the preemptor's plugins see 0.
            if (index := self._index.get(name)) is not None:
                requested[index] += sign * amount
        non_zero[0] += sign * info.non_zero[0]
        non_zero[1] += sign * info.non_zero[1]

    def _show(self) -> None:
        if self._sums is None:
            return
        table = self.table
        table.requested = np.array(self._sums[0], dtype=np.int64).T
        table.non_zero_requested = np.array(self._sums[1], dtype=np.int64).T
        table.pod_count = np.array([len(pods) for pods in table.pods], dtype=np.int64)

    def _tell(self, plugin: str, call: str, follow: Follow, state: CycleState, info: PodInfo) -> None:
        self._show()
        text = f'running {call} on PreFilter plugin "{plugin}"'
        try:
            status = follow(state, self._attempt.pod, info, self.table)
        except Exception as error:
            raise PluginError(f"{text}: {error}") from error
        if not status.ok:
            raise PluginError(f"{text}: {status.message}")
