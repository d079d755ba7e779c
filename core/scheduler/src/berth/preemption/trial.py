"""Simulated eviction and restoration of pods on nodes, and whether the preemptor fits there then.

All rows are tried at once, and each is simulated independently: what is evicted on one is there for
all others. Sums change as columns; which pods a row has is worked out only for plugins that look. Plugins
that count over several nodes follow the changes in the cycle state; where one of them cannot do so for
several simulated rows at once, a trial has one row.

Source: pkg/scheduler/framework/runtime/framework.go RunFilterPluginsWithNominatedPods (Kubernetes v1.36).
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from berth.evaluation.filter_with_nominated import follow_pods
from berth.evaluation.nominated_rows import NominatedRows
from berth.evaluation.points.filtering import run_filters
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import FilterPlugin, PreFilterExtensions, ProposalExtensions
from berth.framework.runtime import Framework
from berth.framework.status import PluginError
from berth.objects.pods.host_ports import HostPort
from berth.objects.pods.pod import Pod
from berth.snapshot.columns.growing import Ints, Mask, Rows
from berth.snapshot.on_demand import OnDemand
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot


def following(framework: Framework, state: CycleState) -> list[PreFilterExtensions]:
    """The plugins at work in this cycle whose state follows pods that come and go."""
    return [plugin for plugin in framework.extensions if plugin.name not in state.skip_filter]


class ReprieveTurns(msgspec.Struct, frozen=True):
    """The pods that come back to each row, one in each turn, in this order.

    Shapes: there bool (k, t), where a row has a pod for a turn; amounts int64 (t, 3 + r, k): how many pods,
        cpu and memory with defaults, requests.
    """

    order: Sequence[Sequence[PodInfo]]
    there: Mask
    amounts: Ints

    @classmethod
    def of(cls, order: Sequence[Sequence[PodInfo]], amounts: Sequence[Ints]) -> "ReprieveTurns":
        """From each row's pods and what each of these holds. Shapes: amounts (m, 3 + r) for each row."""
        lengths = np.array([len(infos) for infos in order], dtype=np.intp)
        together = np.concatenate(amounts)
        turn = np.arange(len(together)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        spread = np.zeros((int(lengths.max()), together.shape[1], len(order)), dtype=np.int64)
        spread[turn, :, np.repeat(np.arange(len(order)), lengths)] = together
        return cls(order, np.arange(len(spread)) < lengths[:, np.newaxis], spread)


NO_TURNS = ReprieveTurns((), np.zeros((0, 0), dtype=bool), np.zeros((0, 0, 0), dtype=np.int64))
"""Nothing is restored: the question is only where the preemptor fits without them."""


class PreemptionTrial:
    """A table of nodes without their potential victims, to which these come back turn by turn.

    `rows` are the table's rows in the snapshot; `promised` are the pods promised to any of the snapshot's;
    `plugins` are asked, all Filter plugins unless given.

    Raises (all methods): PluginError where a plugin fails.
    """

    def __init__(
        self,
        framework: Framework,
        attempt: Attempt,
        table: Snapshot,
        rows: Rows,
        promised: NominatedRows,
        *,
        plugins: Sequence[FilterPlugin] | None = None,
    ) -> None:
        self.table = table
        self._plugins = framework.plugins.filter if plugins is None else plugins
        self._attempt = attempt
        self._state = attempt.state.clone()
        self._following = following(framework, attempt.state)
        self._places, self._promised = promised.at(rows)
        self._promised_here: dict[int, Sequence[PodInfo]] = {}
        self._turns = NO_TURNS
        self._added = table.added = np.zeros(len(table), dtype=bool)
        self._pods_without, self._ports_without = table.pods, table.ports or ()
        table.pods, table.ports = OnDemand(len(table), self._pods), OnDemand(len(table), self._ports)

    def begin(self, turns: ReprieveTurns) -> None:
        """Let plugins know that the pods of these turns are gone."""
        self._turns = turns
        k = len(self.table)
        self._came = np.zeros(turns.there.shape, dtype=bool)
        self._stayed = np.zeros(turns.there.shape, dtype=bool)
        self._tell(self._state, -1, ((i, info) for i in range(k) for info in turns.order[i]))

    def bring_back(self, turn: int, among: Mask) -> None:
        """Think the pod of that turn back onto these rows. Shapes: among bool (k,)."""
        self._came[:, turn] = self._stayed[:, turn] = among
        self._change(turn, among, 1)

    def take_again(self, turn: int, which: Mask) -> None:
        """Think the pod of that turn away again from these rows. Shapes: which bool (k,)."""
        self._stayed[which, turn] = False
        self._change(turn, which, -1)

    async def fits(self, among: Mask, diagnosis: Diagnosis) -> Mask:
        """Where the preemptor fits, with and without the pods that were promised the node.

        Shapes: among and result bool (k,), rows of the trial.
        """
        promised = np.zeros(among.size, dtype=bool)
        promised[self._places] = True
        promised &= among
        if not promised.any():
            return await self._pass(self._state, among, diagnosis)
        alive = await self._pass_with_promised(among, diagnosis)
        again = alive & promised
        if again.any():
            alive &= await self._pass(self._state, again, diagnosis) | ~again
        return alive

    async def _pass_with_promised(self, among: Mask, diagnosis: Diagnosis) -> Mask:
        state = self._state.clone() if self._following else self._state
        promised = {
            place: self._promised.pods[row]
            for place, row in zip(self._places.tolist(), self._promised.rows.tolist(), strict=True)
        }
        self._hold(self._places, self._promised, 1)
        self._promised_here = promised
        self._added[self._places] = True
        try:
            self._tell(state, 1, ((i, info) for i, infos in promised.items() for info in infos))
            return await self._pass(state, among, diagnosis)
        finally:
            self._promised_here = {}
            self._added[self._places] = False
            self._hold(self._places, self._promised, -1)

    def _hold(self, places: Rows, promised: NominatedRows, sign: int) -> None:
        table = self.table
        table.requested[:, places] += sign * promised.requested
        table.non_zero_requested[:, places] += sign * promised.non_zero
        table.pod_count[places] += sign * promised.count

    async def _pass(self, state: CycleState, among: Mask, diagnosis: Diagnosis) -> Mask:
        attempt = self._attempt.on(self.table, state)
        try:
            return await run_filters(self._plugins, attempt, among, diagnosis)
        finally:
            attempt.record.intervals.clear()

    def _change(self, turn: int, among: Mask, sign: int) -> None:
        amounts, table = self._turns.amounts[turn] * (sign * among), self.table
        table.pod_count += amounts[0]
        table.non_zero_requested += amounts[1:3]
        table.requested += amounts[3:]
        order = self._turns.order
        self._tell(self._state, sign, ((i, order[i][turn]) for i in np.flatnonzero(among).tolist()))

    def _pods(self, i: int) -> dict[str, PodInfo]:
        pods = dict(self._pods_without[i])
        for turn in np.flatnonzero(self._stayed[i]).tolist() if self._turns is not NO_TURNS else ():
            info = self._turns.order[i][turn]
            pods[info.uid] = info
        return pods | {info.uid: info for info in self._promised_here.get(i, ())}

    def _ports(self, i: int) -> set[HostPort]:
        ports = set(self._ports_without[i])
        for turn in np.flatnonzero(self._came[i]).tolist() if self._turns is not NO_TURNS else ():
            info = self._turns.order[i][turn]
            # As upstream has it: of two pods with one port, which only bypass the scheduler, either frees it.
            (ports.update if self._stayed[i, turn] else ports.difference_update)(info.ports)
        return ports.union(*(info.ports for info in self._promised_here.get(i, ())))

    @property
    def follows(self) -> bool:
        """Whether the state of some plugin follows pods."""
        return bool(self._following)

    def follow_on_other_node(self, node: Snapshot, info: PodInfo, sign: int) -> None:
        """Let plugins know of a pod that comes (1) to a node that is not in the table, or goes (-1).

        The table has one row; `node` is a table of that node alone.
        """
        for plugin in self._following:
            follow = plugin.add_pod if sign > 0 else plugin.remove_pod
            status = follow(self._state, self._attempt.pod, info, node)
            if not status.ok:
                raise PluginError(status.message)

    def release(self, plugins: Iterable[ProposalExtensions], gone: Sequence[Pod]) -> None:
        """Let plugins know that these pods and what is kept for them alone are gone."""
        for plugin in plugins:
            if plugin.name not in self._state.skip_filter:
                plugin.follow_release(self._state, self._attempt.pod, gone)

    def _tell(self, state: CycleState, sign: int, pods: Iterable[tuple[int, PodInfo]]) -> None:
        """Let plugins know of pods that come (1) to rows of the table, or go (-1)."""
        if not self._following:
            return
        follow_pods(self._following, self._attempt.on(self.table, state), list(pods), sign)
