"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod brings nearer to equal use.

Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go (Kubernetes v1.36).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from berth.config.plugin_args import NodeResourcesBalancedAllocationArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.interface import (
    MAX_NODE_SCORE,
    NO_ROW_FORM,
    CacheKey,
    Depends,
    PreScorePlugin,
    RowForm,
    ScorePlugin,
    Scores,
    VersionedKey,
)
from berth.framework.status import SKIP, SUCCESS, Status
from berth.objects.devices.devices import DeviceClass
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import Units, accounted_requests
from berth.plugins.device_offers import Amounts, DeviceOffers
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.node_resources_fit.scoring import counts
from berth.plugins.resource_balance import (
    Balances,
    balance_of_row,
    balances,
    balances_of_rows,
    balances_with_devices,
)
from berth.snapshot.columns.growing import Mask, Rows
from berth.snapshot.columns.resource_columns import BASIC_RESOURCES
from berth.snapshot.snapshot import Snapshot

TWICE_MIDDLE = MAX_NODE_SCORE // 2 + MAX_NODE_SCORE


class BalancedRequest(msgspec.Struct, frozen=True):
    """What the pod requests of the configured resources, without defaults.

    With the classes behind what devices are to serve.
    """

    amounts: Units
    classes: Mapping[str, DeviceClass]


class NodeResourcesBalancedAllocation(InTreePlugin, PreScorePlugin, ScorePlugin):
    """Score the change that the pod makes to a node's balance: 75 for none, 50 to 100."""

    depends = Depends.NODE

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resources = tuple(resource.name for resource in args.resources)
        # These have a place in the columns, whatever nodes offer, and count for every pod.
        self._all_basic = all(name in BASIC_RESOURCES for name in self._resources)
        extended = handle.feature_enabled("DRAExtendedResource")
        self._devices = DeviceOffers(handle.listers) if extended else None

    def pre_score(self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask) -> Status:
        """Work out the request; a pod that asks for none of the resources changes no balance."""
        del nodes, feasible
        amounts = self._requests(pod)
        if not any(amounts.values()):
            return SKIP
        classes = {} if self._devices is None else self._devices.backed(self._resources, amounts)
        state.write(BalancedRequest, BalancedRequest(amounts, classes))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """Half of what balance the pod adds or takes, around 75."""
        del pod
        request = state.read(BalancedRequest)
        if self._devices is not None and request.classes:
            return self._with_devices(request, nodes, self._devices.amounts(request.classes, nodes))
        names, amounts = self._counted(request.amounts, nodes)
        change = balances(names, amounts, nodes)
        change += self._start(names, nodes)
        # Balance is 50 to 100, so what is halved is never below 0.
        change >>= 1
        return change.astype(np.int64)

    def _with_devices(
        self, request: BalancedRequest, nodes: Snapshot, devices: Mapping[str, Amounts]
    ) -> Scores:
        names = [name for name in self._resources if counts(name, request.amounts)]
        change = balances_with_devices(names, [request.amounts[name] for name in names], nodes, devices)
        change += TWICE_MIDDLE - balances_with_devices(names, [0] * len(names), nodes, devices)
        change >>= 1
        return change.astype(np.int64)

    def score_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[Scores]:
        """The same for rows; there is no such form where devices count."""
        del pod
        request = state.read(BalancedRequest)
        if request.classes:
            return NO_ROW_FORM
        names, amounts = self._counted(request.amounts, nodes)
        before, after = _start_of_row(names, nodes), balance_of_row(names, amounts, nodes)
        return RowForm(lambda row: (after(row) + before(row)) >> 1, self._scores_of(names, amounts, nodes))

    def _scores_of(
        self, names: tuple[str, ...], amounts: Sequence[int], nodes: Snapshot
    ) -> Callable[[Rows], Scores] | None:
        after = balances_of_rows(names, amounts, nodes)
        if after is None:
            return None

        def scores(rows: Rows) -> Scores:
            change = after(rows)
            change += self._start(names, nodes).take(rows)
            change >>= 1
            return change.astype(np.int64)

        return scores

    def _start(self, names: tuple[str, ...], nodes: Snapshot) -> Balances:
        """What balance with the pod is added to, not to be written to. Shapes: result int32 (n,)."""
        return nodes.of_rows((self.name, names), partial(_start, names), partial(_start_of_row, names))

    def _counted(self, requests: Units, nodes: Snapshot) -> tuple[tuple[str, ...], list[int]]:
        """The resources that count for a pod, in the order of the configuration, and what it requests."""
        names = self._resources
        if not self._all_basic:
            names = tuple([n for n in names if counts(n, requests) and nodes.offered(n) is not None])
        return names, [requests[name] for name in names]

    def sign_pod(self, pod: Pod) -> Hashable:
        """The request of the configured resources."""
        return tuple(self._requests(pod).values())

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> CacheKey | None:
        """Nothing else, unless devices stand behind some resource."""
        del state
        if self._devices is not None and self._devices.backed(self._resources, self._requests(pod)):
            return None
        return VersionedKey((), self._version, nodes)

    def _version(self, nodes: Snapshot) -> Hashable:
        """Of device classes."""
        del nodes
        return self.handle.listers.device_classes.generation

    def _requests(self, pod: Pod) -> Units:
        requests = accounted_requests(pod)
        return {name: requests.get(name, 0) for name in self._resources}


def _start(names: tuple[str, ...], nodes: Snapshot) -> Balances:
    """What a node's balance with the pod is added to: the middle, twice, less its balance without the pod."""
    return TWICE_MIDDLE - balances(names, [0] * len(names), nodes)


def _start_of_row(names: tuple[str, ...], nodes: Snapshot) -> Callable[[int], int]:
    before = balance_of_row(names, [0] * len(names), nodes)
    return lambda row: TWICE_MIDDLE - before(row)
