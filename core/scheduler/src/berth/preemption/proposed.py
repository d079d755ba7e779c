"""Tries what a plugin proposes to evict, before the first eviction: would the pod fit without the victims?

The proposing plugin is not asked: whether it lets the pod pass then is its own affair.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from berth.evaluation.nominated_rows import NominatedRows
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import ProposalExtensions
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, PluginError, Status, failed
from berth.objects.pods.pod import Pod
from berth.preemption.trial import PreemptionTrial
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

ONE_ROW = np.ones(1, dtype=bool)


class ProposedPreemption(msgspec.Struct, frozen=True):
    """What a plugin proposes: a node, and the pods that leave first.

    `is_leaving` says of a UID whether the pod is being evicted for another one.
    """

    plugin: str
    node_name: str
    victims: Sequence[Pod]
    is_leaving: Callable[[str], bool]


async def fits_without(
    framework: Framework, attempt: Attempt, nominated: NominatedRows, proposal: ProposedPreemption
) -> Status:
    """Return SUCCESS if the pod fits on the node once the victims, and who is leaving there, are gone.

    All Filter plugins are asked but the one that proposes it.
    """
    nodes, victims, node_name = attempt.nodes, proposal.victims, proposal.node_name
    row = nodes.row_of[node_name]
    gone = {victim.uid for victim in victims}
    here = [
        info
        for uid, info in nodes.pods[row].items()
        if uid in gone or info.pod.terminating or proposal.is_leaving(uid)
    ]
    on_other_nodes = [
        (nodes.row_of[victim.node_name], victim.uid)
        for victim in victims
        if nodes.row_of.get(victim.node_name, row) != row
    ]
    plugins = [plugin for plugin in framework.plugins.filter if plugin.name != proposal.plugin]
    table = nodes.what_if(node_name, remove=here)
    try:
        trial = PreemptionTrial(framework, attempt, table, np.array([row]), nominated, plugins=plugins)
        if trial.follows:
            _follow(trial, nodes, row, here)
            for other, uid in on_other_nodes:
                if uid in nodes.pods[other]:
                    _follow(trial, nodes, other, [nodes.pods[other][uid]])
        others = [victim for victim in victims if victim.node_name != node_name]
        releasing = [plugin for plugin in plugins if isinstance(plugin, ProposalExtensions)]
        trial.release(releasing, [info.pod for info in here] + others)
        diagnosis = Diagnosis([node_name])
        fits = (await trial.fits(ONE_ROW, diagnosis))[0]
    except PluginError as error:
        return failed(error)
    return SUCCESS if fits else diagnosis.statuses()[0]


def _follow(trial: PreemptionTrial, nodes: Snapshot, row: int, gone: Sequence[PodInfo]) -> None:
    view = nodes.view(np.array([row]))
    for info in gone:
        trial.follow_on_other_node(view, info, -1)
