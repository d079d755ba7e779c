"""Placements of pod groups by a sidecar: made, scored, and what is wrong with them."""

import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.framework.status import Code, PluginError
from berth.out_of_tree.limits import PLACEMENTS
from berth.out_of_tree.packing import bitmap
from berth.out_of_tree.points import placement
from berth_plugin_proto import common_pb2, identity_pb2, placement_pb2, scheduling_pb2
from berth_sdk import SKIP, Normalization, Plugin, Scores
from berth_sdk.serving import Server
from tests.unit.out_of_tree.points.placing import Trial
from tests.unit.out_of_tree.scripted import NAME, SUCCESS, Harness, Scripted, hosted, running

GENERATE = identity_pb2.EXTENSION_POINT_PLACEMENT_GENERATE
SCORE = identity_pb2.EXTENSION_POINT_PLACEMENT_SCORE
NAMES = ("n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8")


class Racks(Plugin):
    """Nodes three by three; the rack of the most pods on low nodes is best."""

    name = NAME

    def __init__(self):
        self.seen = []

    def configure(self, arguments, profile):
        pass

    def generate_placements(self, group, pod, nodes):
        self.seen.append((group, pod.name))
        if group.name == "anywhere":
            return SKIP
        if group.name == "nowhere":
            return "no rack is large enough"
        row = np.arange(len(nodes))
        return {f"rack-{rack}": row // 3 == rack for rack in range(3)}

    def score_placements(self, group, pod, nodes, proposed):
        if group.name == "anywhere":
            return None
        del pod, nodes
        self.seen.append(proposed)
        sums = [sum(node for _, node in each.assignments) for each in proposed]
        return Scores(np.array(sums), Normalization.MAX_REVERSE)


@asynccontextmanager
async def racks(plugin):
    """A trial with that plugin of the SDK."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        path = Path(folder, "p.sock")
        server = Server(plugin, f"unix:{path}")
        await server.start()
        try:
            async with running(Harness(path), *NAMES) as harness:
                await harness.up()
                yield Trial(harness)
        finally:
            await server.stop(0)


async def test_a_plugin_generates_placements():
    """Its sets of nodes are tried in its order; it knows the group and the pods that wait."""
    plugin = Racks()
    async with racks(plugin) as trial:
        status, found = await trial.placements()

    assert (status.ok, {f"rack-{i}": list(NAMES[3 * i : 3 * i + 3]) for i in range(3)}) == (True, found)
    ((group, first),) = plugin.seen
    assert ("default", "gang", ["p", "q"], "p") == (
        group.namespace,
        group.name,
        [each.name for each in group.pods],
        first,
    )


async def test_no_opinion_and_nowhere():
    """SKIP leaves the group all nodes; a reason turns it down with its words."""
    async with racks(Racks()) as trial:
        assert {"": list(NAMES)} == (await trial.placements("anywhere"))[1]
        status, found = await trial.placements("nowhere")

    assert (Code.UNSCHEDULABLE, "no rack is large enough", {}) == (status.code, status.message, found)


async def test_a_plugin_scores_placements(monkeypatch):
    """Scores are normalized over all placements, be they asked about in one call or in several."""
    plugin = Racks()
    async with racks(plugin) as trial:
        together = await trial.scores("n0", "n4", "n8")
        monkeypatch.setattr(placement, "PROPOSED_BYTES", 1)
        apart = await trial.scores("n0", "n4", "n8")

    assert ([200, 100, 0], together) == (together, apart)
    assert [3, 1, 1, 1] == [len(proposed) for proposed in plugin.seen]
    assert [("p", 8), ("q", 8)] == [(key.name, node) for key, node in plugin.seen[0][2].assignments]


async def test_no_opinion_on_scores():
    """Then all placements are alike."""
    async with racks(Racks()) as trial:
        assert [0, 0] == await trial.scores("n0", "n8", name="anywhere")


def proposed(*rows, name="a"):
    return placement_pb2.Placement(name=name, bitmap=bitmap(np.array(rows, dtype=np.intp), 3))


@asynccontextmanager
async def scripted(placements=(), scores=None, status=SUCCESS, **options):
    """A trial with a plugin of three nodes that answers so."""
    plugin = Scripted(GENERATE, SCORE)

    async def generate(request, _context):
        return placement_pb2.GeneratePlacementsResponse(
            generation=request.call.generation, status=status, placements=placements
        )

    async def score(request, _context):
        return placement_pb2.ScorePlacementsResponse(
            generation=request.call.generation, status=status, scores=scores
        )

    plugin.replies |= {"GeneratePlacements": generate, "ScorePlacements": score}
    async with hosted(plugin, **options) as harness:
        await harness.up()
        yield Trial(harness)


@pytest.mark.parametrize(
    ("placements", "why"),
    [
        ([proposed(0), proposed(1)], "two placements are named a"),
        ([proposed(0, name="")], "needs a name of 1 to 253 bytes"),
        ([proposed(0, name="x" * 254)], "needs a name of 1 to 253 bytes"),
        ([proposed()], "placement a has no node"),
        ([placement_pb2.Placement(name="a", bitmap=b"\x01\x00")], "2 bytes of bitmap for 3 entries"),
        ([proposed(0, name=f"{i}") for i in range(PLACEMENTS + 1)], f"at most {PLACEMENTS} are tried"),
    ],
)
async def test_placements_that_are_none(placements, why):
    """They fail the group's attempt by default, with what is wrong."""
    async with scripted(placements) as trial:
        status, found = await trial.placements()

    assert (Code.ERROR, {}) == (status.code, found)
    assert why in status.message


async def test_failures_that_are_passed_over():
    """With Ignore the group may go anywhere, and all placements are alike."""
    broken = common_pb2.Status(code=common_pb2.CODE_ERROR, reasons=["broken"])
    policy = {ExtensionPoint.PLACEMENT_GENERATE: FailurePolicy.IGNORE}
    async with scripted(status=broken, policy=policy) as trial:
        assert {"": ["n0", "n1", "n2"]} == (await trial.placements())[1]
        assert [0, 0] == await trial.scores("n0", "n1")


async def test_a_failure_to_score_may_fail_the_group():
    """Where the user says so."""
    policy = {ExtensionPoint.PLACEMENT_SCORE: FailurePolicy.FAIL}
    async with scripted(scores=scheduling_pb2.Scores(uint8=b"\x01"), policy=policy) as trial:
        with pytest.raises(PluginError, match="1 bytes of uint8 scores for 2 nodes"):
            await trial.scores("n0", "n1")


async def test_what_is_not_announced_is_not_asked():
    """A plugin at these points that does not serve them has no opinion."""
    async with hosted(Scripted()) as harness:
        await harness.up()
        trial = Trial(harness)
        assert {"": ["n0", "n1", "n2"]} == (await trial.placements())[1]
        assert [0, 0] == await trial.scores("n0", "n1")
