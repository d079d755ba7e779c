"""Broken reservations and bindings."""

import asyncio
from itertools import count

from berth_plugin_proto import common_pb2, scheduling_pb2
from berth_sdk.errors import Cause, ContractError
from berth_sdk.outcomes import MetadataPatch
from berth_sdk.plugin import current_call
from tests.unit.conformance.broken import Fault
from tests.unit.conformance.faults_of_calls import answered, asked, refuses
from tests.unit.conformance.reference import Slots


def says(code, *reasons):
    """An answer whose status is another."""

    def change(_server, _request, response):
        response.status.CopyFrom(common_pb2.Status(code=code, reasons=reasons))

    return change


def patches(text):
    def change(_server, _request, response):
        response.metadata_patch = text

    return change


def other_patches(server, _request, response):
    number = server.memory.setdefault("numbers", count())
    response.metadata_patch = f'{{"labels": {{"n": "{next(number)}"}}}}'.encode()


def once(server, request, response):
    seen = server.memory.setdefault("seen", set())
    if request.call.epoch in seen:
        response.status.code = common_pb2.CODE_SUCCESS
    seen.add(request.call.epoch)


def nowhere(_server, request):
    if request.node_name == "nowhere":
        raise ContractError("broken")


async def goes_on_regardless(server, name, request, proceed):
    """Reserve what an abandoned call asked for."""
    if name != "Reserve":
        return await proceed(request)
    answer = server.memory["reserving"] = asyncio.ensure_future(proceed(request))
    return await asyncio.shield(answer)


def failed_only(_server, request):
    if request.outcome == scheduling_pb2.CYCLE_OUTCOME_FAILED:
        raise ContractError("broken")


def nominates(node, *victims):
    def change(_server, _request, response):
        response.status.CopyFrom(common_pb2.Status(code=common_pb2.CODE_SUCCESS))
        response.nominated_node_name = node
        response.victim_uids.extend(victims)

    return change


class TakesTwice(Slots):
    """A repeated Reserve takes another slot."""

    def reserve(self, pod, node):
        key = current_call().key
        if self.held.get(key.uid) == (key.attempt, node.name):
            self.held[f"{key.uid}-again"] = key.attempt, node.name
        return super().reserve(pod, node)


class Fickle(Slots):
    """Each Reserve writes something else."""

    numbers = count()

    def reserve(self, pod, node):
        super().reserve(pod, node)
        return MetadataPatch(annotations={"slot": str(next(self.numbers))})


class Keeps(Slots):
    """Unreserve gives nothing back."""

    def unreserve(self, _key, _node_name):
        return None


class GivesMore(Slots):
    """A repeated Unreserve gives a slot that was not taken."""

    def __init__(self):
        super().__init__()
        self.given_back, self.extra = set(), {}

    def state_reset(self, *, epoch_changed):
        super().state_reset(epoch_changed=epoch_changed)
        self.given_back, self.extra = set(), {}

    def free(self, node, nodes=None):
        return super().free(node, nodes) + self.extra.get(node.name, 0)

    def unreserve(self, key, node_name):
        if key.uid not in self.held and key in self.given_back:
            self.extra[node_name] = self.extra.get(node_name, 0) + 1
        if key.uid in self.held:
            self.given_back.add(key)
        super().unreserve(key, node_name)


class GivesUnasked(GivesMore):
    """An Unreserve of what was not reserved gives a slot."""

    def unreserve(self, key, node_name):
        if node_name == "nowhere":
            self.extra["node-0"] = 1
        Slots.unreserve(self, key, node_name)


class AnyAttempt(Slots):
    """Unreserve does not look at the attempt."""

    def unreserve(self, key, _node_name):
        self.held.pop(key.uid, None)


class Haunted(Slots):
    """What was reserved in the last epoch still counts."""

    def state_reset(self, *, epoch_changed):
        if epoch_changed:
            self.held = {f"ghost-{uid}": held for uid, held in self.held.items() if "ghost" not in uid}


class Forgets(Slots):
    """A transfer of the same epoch loses reservations, and what they were for."""

    def __init__(self):
        super().__init__()
        self.lost = set()

    def state_reset(self, *, epoch_changed):
        self.lost = set() if epoch_changed else set(self.held)
        self.held = {}

    def reserve(self, pod, node):
        return "lost" if pod.uid in self.lost else super().reserve(pod, node)


def of_its_epoch():
    return refuses(Cause.NOT_SYNCED, lambda mirror, call: call.epoch != mirror.epoch)


SKIP, WAIT, NO = common_pb2.CODE_SKIP, common_pb2.CODE_WAIT, common_pb2.CODE_UNSCHEDULABLE
FAULTS = {
    "reserve/answer": answered({"Reserve"}, says(SKIP)),
    "reserve/repeated": Fault(plugin=TakesTwice),
    "reserve/same-answer": Fault(plugin=Fickle),
    "unreserve/gives-back": Fault(plugin=Keeps),
    "unreserve/repeated": Fault(plugin=GivesMore),
    "unreserve/unknown": Fault(plugin=GivesUnasked),
    "unreserve/old-attempt": Fault(plugin=AnyAttempt),
    "unreserve/cut-off": Fault(goes_on_regardless),
    "unreserve/any-generation": asked({"Unreserve"}, of_its_epoch()),
    "reserve/new-epoch": Fault(plugin=Haunted),
    "reserve/resync": Fault(plugin=Forgets),
    "reserve/node-gone": asked({"Reserve"}, nowhere),
    "permit/answer": answered({"Permit"}, says(SKIP)),
    "permit/timeout": answered({"Permit"}, lambda _s, _q, r: r.ClearField("timeout")),
    "permit/repeated": answered({"Permit"}, once),
    "pre-bind/answer": answered({"PreBind"}, says(SKIP)),
    "pre-bind/patch": answered({"PreBind"}, patches(b'{"spec": {}}')),
    "reserve/patch": answered({"Reserve"}, patches(b'{"spec": {}}')),
    "pre-bind/keys": answered({"PreBind"}, patches(b'{"labels": {"pod-template-hash": null}}')),
    "reserve/keys": answered({"Reserve"}, patches(b'{"annotations": {"a.kubernetes.io/b": "c"}}')),
    "pre-bind/repeated": answered({"PreBind"}, other_patches),
    "bind/answer": answered({"Bind"}, says(NO, "no")),
    "post-bind/any-generation": asked({"PostBind"}, of_its_epoch()),
    "cycle-done/outcomes": asked({"CycleDone"}, failed_only),
    "cycle-done/any-generation": asked({"CycleDone"}, of_its_epoch()),
    "post-filter/answer": answered({"PostFilter"}, says(SKIP)),
    "post-filter/victims": answered({"PostFilter"}, nominates("node-0", "missing")),
    "post-filter/node": answered({"PostFilter"}, nominates("nowhere")),
    "pre-enqueue/answer": answered({"PreEnqueue"}, says(WAIT)),
    "pre-enqueue/without-state": asked({"PreEnqueue"}, of_its_epoch()),
}
