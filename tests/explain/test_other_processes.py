"""Sidecars are asked about the pod as it would be, and seldom."""

import msgspec
import numpy as np

from berth.explain import proposals
from berth.framework.hypothetical_pod import HypotheticalPod
from berth.framework.interface import FilterPlugin
from berth.framework.status import unschedulable
from berth.objects.taint import Taint
from tests.explain.asking import Asked
from tests.explain.pending_pods import DEFAULT, GPU
from tests.fakes import Named


class Sent(Named, FilterPlugin):
    """Turns pods down by a rule about the JSON that it would be sent."""

    in_process = False
    reasons = (unschedulable("not so"),)

    def __init__(self, rule):
        super().__init__("Sent")
        self.rule = rule
        self.supposed = []

    def filter(self, state, pod, nodes):
        supposed = state.get(HypotheticalPod)
        sent = pod.written() if supposed is None else supposed.object(b"")
        document = msgspec.json.decode(msgspec.json.encode(sent) if supposed is None else sent)
        if supposed is not None:
            self.supposed.append(document)
        return np.full(len(nodes), not self.rule(document["spec"]), dtype=np.uint8)

    def filter_status(self, state, code):
        del state
        return self.reasons[code - 1]


def cpu(spec):
    return int(spec["containers"][0]["resources"]["requests"]["cpu"])


async def explained(plugin, *nodes, **pod):
    cluster = Asked(*DEFAULT, plugin)
    for i, node in enumerate(nodes):
        cluster.add_node(f"n{i}", **node)
    cluster.add_pod("p", **pod)
    await cluster.run()
    return await cluster.explain()


async def test_a_change_that_such_a_plugin_turns_down_is_not_proposed():
    """It has nothing against the pod as it is written."""
    found = await explained(Sent(lambda spec: "tolerations" not in spec), {"taints": [GPU]})

    assert "Toleration" not in [proposal.kind for proposal in found.proposals]


async def test_a_change_that_such_a_plugin_lets_pass_is_proposed():
    """It turns the pod down as it is written, and others do so for another reason."""
    plugin = Sent(lambda spec: cpu(spec) <= 2)
    found = await explained(plugin, {"cpu": "4"}, {"cpu": "2"}, cpu="8")

    (proposal,) = [each for each in found.proposals if each.kind == "Requests"]
    assert ("Request at most 2 of cpu (now 8).", ["n0", "n1"]) == (proposal.sentence, proposal.nodes)
    assert {4, 2} <= {cpu(document["spec"]) for document in plugin.supposed}


async def test_it_is_asked_only_where_all_others_let_the_pod_pass():
    """A node that two of them turn down takes two changes: none of the single ones goes out."""
    plugin = Sent(lambda _spec: True)
    found = await explained(plugin, {"cpu": "2", "taints": [GPU]}, cpu="8")

    assert ["Several"] == [proposal.kind for proposal in found.proposals]
    changed = [
        each["spec"] for each in plugin.supposed if "tolerations" in each["spec"] or cpu(each["spec"]) < 8
    ]
    assert [(2, True)] == [(cpu(spec), "tolerations" in spec) for spec in changed]


async def test_it_is_asked_a_few_times_and_no_more(monkeypatch):
    """However many changes there are to try."""
    monkeypatch.setattr(proposals, "MAX_ASKED", 3)
    plugin = Sent(lambda spec: "tolerations" not in spec)
    taints = [{"taints": [Taint(f"t{i}", "", "NoSchedule")]} for i in range(8)]
    found = await explained(plugin, *taints)

    assert 3 == len(plugin.supposed)
    assert "stopped after 3 trials that asked other processes" == found.proposals_cut_short
