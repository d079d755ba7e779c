"""Broken orders of the queue, and broken placements of pod groups."""

# ruff: noqa: ARG002 - the SDK gives the methods their parameters

from berth_plugin_proto import common_pb2, group_pb2, placement_pb2, scheduling_pb2
from berth_sdk.errors import ContractError
from berth_sdk.ttrpc import Connection
from tests.unit.conformance.broken import Fault
from tests.unit.conformance.faults_of_calls import answered, asked
from tests.unit.conformance.faults_of_framing import over
from tests.unit.conformance.reference import Slots

KEYS, MADE, SCORED = {"SortKeys"}, {"GeneratePlacements"}, {"ScorePlacements"}
JUDGED, PROPOSED = {"PlacementFeasible"}, {"PodGroupPostFilter"}


class Numbers(Slots):
    """Numbers pods as they come; who comes again is another one."""

    number = 0

    def queue_reset(self, profile):
        self.number = 0

    def sort_key(self, pod):
        self.number += 1
        return (self.number,)


class NeverResets(Slots):
    """Gives each pod its number, and keeps it whatever the host says."""

    def __init__(self):
        super().__init__()
        self.numbers = {}

    def sort_key(self, pod):
        first = len(pod.name) if pod.name.startswith("more") else len(self.numbers)
        return (self.numbers.setdefault(pod.uid, first) + len(self.numbers),)


class Counts(Slots):
    """Gives each pod the number of pods that wait, and does not hear who left."""

    def __init__(self):
        super().__init__()
        self.waiting = {}

    def queue_reset(self, profile):
        self.waiting.clear()

    def sort_key(self, pod):
        return (self.waiting.setdefault(pod.uid, len(self.waiting)),)


class OtherKeys(Connection):
    """Over ttrpc each key is one too high."""

    def _answer(self, stream, response, ends):
        for key in getattr(response, "keys", ()):
            key.parts[0] += 1
        super()._answer(stream, response, ends)


def no_key(_server, request, response):
    if request.pods:
        del response.keys[:]


def needs_pods(_server, request):
    if not request.pods:
        raise ContractError("broken")


def same_names(_server, _request, response):
    for each in response.placements:
        each.name = "same"


def fails_with_placements(_server, _request, response):
    response.status.CopyFrom(common_pb2.Status(code=common_pb2.CODE_UNSCHEDULABLE, reasons=["none"]))


def another_generation(_server, _request, response):
    response.generation += 1


def upside_down(response):
    """Placements in another order, a score that is another."""
    if isinstance(response, placement_pb2.GeneratePlacementsResponse):
        found = list(response.placements)[::-1]
        del response.placements[:]
        response.placements.extend(found)
    if isinstance(response, placement_pb2.ScorePlacementsResponse):
        response.scores.uint8 = response.scores.uint8[::-1]
    if isinstance(response, group_pb2.PlacementFeasibleResponse):
        del response.verdicts[-1:]
    if isinstance(response, group_pb2.PodGroupPostFilterResponse):
        del response.proposals[:]


def turned_round(server, _request, response):
    if server.memory.setdefault("turn", False):
        upside_down(response)
    server.memory["turn"] = not server.memory["turn"]


def everywhere(_server, request):
    request.ClearField("candidates")


def too_few(_server, request, response):
    if len(request.proposed) > 2:
        response.scores.CopyFrom(
            scheduling_pb2.Scores(uint8=b"\x01", normalization=scheduling_pb2.NORMALIZATION_NONE)
        )


def scores_with_skip(_server, _request, response):
    response.status.code = common_pb2.CODE_SKIP


class OtherPlacementsInFrames(Connection):
    """Over ttrpc the answers of that kind are others."""

    kind = placement_pb2.GeneratePlacementsResponse

    def _answer(self, stream, response, ends):
        if isinstance(response, self.kind):
            upside_down(response)
        super()._answer(stream, response, ends)


class OtherScoresInFrames(OtherPlacementsInFrames):
    kind = placement_pb2.ScorePlacementsResponse


class OtherVerdictsInFrames(OtherPlacementsInFrames):
    kind = group_pb2.PlacementFeasibleResponse


class OtherProposalsInFrames(OtherPlacementsInFrames):
    kind = group_pb2.PodGroupPostFilterResponse


def no_last_verdict(_server, _request, response):
    del response.verdicts[-1:]


def first_verdict_goes(_server, _request, response):
    response.verdicts[0].CopyFrom(common_pb2.Status(code=common_pb2.CODE_SUCCESS))


def fails_with_proposals(_server, _request, response):
    response.status.CopyFrom(common_pb2.Status(code=common_pb2.CODE_UNSCHEDULABLE, reasons=["none"]))


def same_victim_twice(_server, _request, response):
    for each in response.proposals:
        each.victim_uids.extend(each.victim_uids[:1])


def by_place(_server, request, response):
    response.scores.uint8 = bytes(range(len(request.proposed)))


FAULTS = {
    "placements/answer": answered(MADE, same_names),
    "placements/status": answered(MADE, fails_with_placements),
    "placements/generation": answered(MADE, another_generation),
    "placements/deterministic": answered(MADE, turned_round),
    "placements/candidates": asked(MADE, everywhere),
    "placement-scores/answer": answered(SCORED, too_few),
    "placement-scores/status": answered(SCORED, scores_with_skip),
    "placement-scores/one-by-one": answered(SCORED, by_place),
    "placement-feasible/answer": answered(JUDGED, no_last_verdict),
    "placement-feasible/one-by-one": answered(JUDGED, first_verdict_goes),
    "pod-group-post-filter/answer": answered(PROPOSED, fails_with_proposals),
    "pod-group-post-filter/victims": answered(PROPOSED, same_victim_twice),
    "pod-group-post-filter/generation": answered(PROPOSED, another_generation),
    "ttrpc/placement-feasible": over(OtherVerdictsInFrames),
    "ttrpc/pod-group-post-filter": over(OtherProposalsInFrames),
    "ttrpc/placements": over(OtherPlacementsInFrames),
    "ttrpc/placement-scores": over(OtherScoresInFrames),
    "sort-keys/answer": answered(KEYS, no_key),
    "sort-keys/nothing-asked": asked(KEYS, needs_pods),
    "sort-keys/anew": Fault(plugin=NeverResets),
    "sort-keys/left": Fault(plugin=Counts),
    "sort-keys/again": Fault(plugin=Numbers),
    "sort-keys/ttrpc": over(OtherKeys),
}
