"""What a run came to, and the state it is read from."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from berth.demo.checker import UnreadableAnswerError, check_api, fetch_state, summary
from berth.demo.checker.summary import ReasonCount, reasons_of
from berth.demo.dataset import OpenbFigures
from tests.unit.dataset.states import GPU, fixed_state, pod_document

UNHELPFUL = (
    "no new claims to deallocate, preemption: 0/3 nodes are available: "
    "3 Preemption is not helpful for scheduling."
)


def turned_down(name, message, scheduler="default-scheduler", reason="Unschedulable"):
    pod = pod_document(name, schedulerName=scheduler)
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    pod["status"]["conditions"] = [condition]
    return pod


def test_resources():
    """Each resource has its allocated part, over all nodes and the pods on them."""
    resources = summary(fixed_state().nodes, fixed_state().pods).resources

    assert resources["cpu"].ratio == pytest.approx(5 / 8)
    assert resources["memory"].ratio == pytest.approx(5 / 32)
    assert resources["pods"].ratio == pytest.approx(5 / 20)
    assert resources[f"{GPU}/milli-gpu"].ratio == pytest.approx(1.833 / 3)


def test_empty():
    """Nothing at all is nothing taken, and no division by zero."""
    assert summary([], []).resources == {}
    assert summary([], fixed_state().pods).resources["cpu"].ratio == 0.0


def test_unreadable_counts_for_nothing():
    """A document that cannot be read does not stop the report."""
    state = fixed_state()
    state.node()["status"]["allocatable"]["cpu"] = "many"
    state.requests("plain")["cpu"] = "some"

    assert summary(state.nodes, state.pods).profiles["default-scheduler"].bound == 5


def test_ended_pods_take_nothing():
    """A pod that has ended is bound, and its amounts are free again."""
    state = fixed_state()
    state.pod("plain")["status"]["phase"] = "Succeeded"
    found = summary(state.nodes, state.pods)

    assert found.resources["cpu"].taken == found.resources["pods"].taken == 4
    assert found.profiles["default-scheduler"].bound == 5


def test_profiles():
    """Bound, turned-down and waiting pods are counted by schedulerName."""
    pods = [
        *fixed_state().pods,
        turned_down("a", "0/1 nodes are available: 1 Insufficient cpu.", "bin-packing"),
        turned_down("gated", "", "bin-packing", "SchedulingGated"),
    ]
    profiles = summary([], pods).profiles

    assert [(n, p.bound, p.unschedulable, p.waiting, p.pods) for n, p in profiles.items()] == [
        ("bin-packing", 0, 1, 1, 2),
        ("default-scheduler", 5, 0, 1, 6),
    ]


def test_reasons():
    """Reasons are counted in pods and nodes, the most frequent first."""
    pods = [
        turned_down("a", "0/9 nodes are available: 4 Insufficient memory, 5 Insufficient cpu."),
        turned_down("b", "0/9 nodes are available: 9 Insufficient cpu.", "bin-packing"),
    ]
    found = summary([], pods)

    assert list(found.reasons.items()) == [
        ("Insufficient cpu", ReasonCount(pods=2, nodes=14)),
        ("Insufficient memory", ReasonCount(pods=1, nodes=4)),
    ]
    assert found.profiles["bin-packing"].reasons == {"Insufficient cpu": ReasonCount(pods=1, nodes=9)}


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"Insufficient cpu": 3}, "0/3 nodes are available: 3 Insufficient cpu."),
        (
            {"node(s) had untolerated taint(s)": 1, "Insufficient cpu": 2},
            f"0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. {UNHELPFUL}",
        ),
        (
            {f"Insufficient {GPU}/milli-gpu": 2, "no GPU, of any model": 1},
            f"0/3 nodes are available: 1 no GPU, of any model, 2 Insufficient {GPU}/milli-gpu. {UNHELPFUL}",
        ),
        (
            {"node(s) didn't satisfy plugin(s) [A B] simultaneously": 0},
            "0/2 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously.",
        ),
        ({}, "0/1 nodes are available:"),
        ({"no nodes available to schedule pods": 0}, "no nodes available to schedule pods"),
        ({}, ""),
    ],
)
def test_reasons_of(expected, message):
    """A message is taken apart into reasons, without what preemption adds."""
    assert expected == reasons_of(message)


def test_whole_trace():
    """The condensed trace, unscheduled, is all waiting on an empty cluster."""
    objects = OpenbFigures().load()
    found = summary(objects.nodes, objects.pods)

    assert found.resources[f"{GPU}/milli-gpu"].offered == 6_212_000
    assert found.resources["cpu"].offered == 125_514
    assert sum(outcome.waiting for outcome in found.profiles.values()) == 8152


class Pages:
    """An API that hands out lists in pages, and remembers what it was asked."""

    def __init__(self, state):
        self.lists = {
            "/api/v1/nodes": state.nodes,
            "/api/v1/pods": state.pods,
            "/apis/events.k8s.io/v1/events": state.events,
        }
        self.asked = []

    async def __call__(self, path):
        self.asked.append(path)
        url = urlsplit(path)
        query = parse_qs(url.query)
        limit, start = int(query["limit"][0]), int(query.get("continue", ["at=0"])[0].removeprefix("at="))
        items = self.lists[url.path]
        more = f"at={start + limit}" if start + limit < len(items) else ""
        page = {"metadata": {"continue": more}, "items": items[start : start + limit] or None}
        return json.dumps(page).encode()


async def test_fetch_in_pages():
    """All pages of all lists are read, and the token is sent back quoted."""
    state, pages = fixed_state(), Pages(fixed_state())

    assert (state.nodes, state.pods, state.events) == await fetch_state(pages, page_size=2)
    assert "/api/v1/pods?limit=2&continue=at%3D4" in pages.asked
    assert (await check_api(pages)).ok


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>", "/api/v1/nodes: no JSON"),
        (b"{}", "/api/v1/nodes: the answer is no list"),
        (b'{"items": {}}', "/api/v1/nodes: the answer is no list"),
        (b'{"metadata": {"continue": "x"}, "items": []}', "the same continue token twice"),
    ],
)
async def test_unreadable_answer(body, says):
    """An answer that is no page of a list is one clear error, and never an endless loop."""

    async def get(_):
        return body

    with pytest.raises(UnreadableAnswerError, match=says):
        await fetch_state(get)
