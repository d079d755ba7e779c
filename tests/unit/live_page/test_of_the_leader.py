"""A standby's page is the leader's, as far as a leader answers."""

import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request

from berth.aggregated_api.errors import UnavailableError
from berth.aggregated_api.replicas import SENT_ON_BY
from berth.live_page.collecting import Collected
from berth.live_page.node_map import version_of
from berth.live_page.of_the_leader import TRIES, OfTheLeader
from berth.live_page.pages import LivePages
from berth.live_page.paths import NODES, STATE
from berth.testing.handles import ManualClock
from tests.unit.live_page.states import collected

OWN = collected(n=2, version="own", leads=False)


def moment(n):
    """A leader's, with n nodes; its version is that of their JSON, as NodeMap has it."""
    found = collected(n=n)
    return Collected(msgspec.structs.replace(found.state, nodes=version_of(found.nodes)), found.nodes)


class Leader:
    """Answers with one moment after the other, a new one whenever its state is asked for."""

    def __init__(self, *moments, failure=None):
        self.asked = []
        self._moments = list(moments)
        self._failure = failure

    async def fetch(self, path):
        self.asked.append(path)
        if self._failure is not None:
            raise self._failure
        if path == NODES:
            return self._moments[0].nodes
        now = self._moments[0]
        if len(self._moments) > 1:
            self._moments.pop(0)
        return msgspec.json.encode(now.state)


async def own():
    return OWN


async def test_the_leaders_moment():
    """And of its nodes nothing is asked again while they are the same."""
    leader, theirs = Leader(moment(3)), moment(3)
    of_leader = OfTheLeader(leader.fetch, own)

    assert [theirs, theirs] == [await of_leader.collect(), await of_leader.collect()]
    assert [STATE, NODES, STATE] == leader.asked


async def test_nodes_that_change_between_two_answers():
    """State and nodes are of one moment."""
    leader = Leader(moment(3), moment(4))

    assert moment(4) == await OfTheLeader(leader.fetch, own).collect()
    assert [STATE, NODES, STATE] == leader.asked


@pytest.mark.parametrize(
    "leader",
    [
        pytest.param(Leader(moment(3), failure=UnavailableError("late")), id="does not answer"),
        pytest.param(Leader(collected(version="other")), id="never of one moment"),
    ],
)
async def test_its_own_moment_where_no_leader_gives_one(leader):
    """After few questions."""
    assert OWN == await OfTheLeader(leader.fetch, own).collect()
    assert len(leader.asked) <= 2 * TRIES


@pytest.mark.parametrize(
    ("leads", "headers", "version"),
    [
        pytest.param(False, {}, "theirs", id="a standby's viewer"),
        pytest.param(False, {SENT_ON_BY: "b"}, "own", id="a request that was passed on"),
        pytest.param(True, {}, "own", id="a leader's viewer"),
    ],
)
async def test_whose_page_is_shown(leads, headers, version):
    """No request is passed on twice."""

    async def theirs():
        return collected(version="theirs")

    pages = LivePages(own, ManualClock(), theirs, lambda: leads).pages()
    for path in (STATE, NODES):
        answer = await pages[path](make_mocked_request("GET", path, headers=headers))

    assert f'"{version}"' == answer.headers["ETag"]
