"""Explanations as pages."""

import pytest

from berth.aggregated_api.text_pages import page as page_of

ATTEMPT = {
    "attempt": 1,
    "startedAt": "2026-11-23T09:40:42Z",
    "result": "unschedulable",
    "node": "",
    "score": None,
    "message": "",
    "evaluatedNodes": 2,
    "feasibleNodes": 0,
    "cycleMilliseconds": 8.8,
    "traceId": "5216",
    "ignored": [],
}


def page(*, attempts=1, awaited=(), trace="5216"):
    """The lines about a pod that a sidecar turned down."""
    state = {
        "kind": "Unschedulable",
        "since": "2026-11-23T09:40:42Z",
        "until": "",
        "node": "",
        "position": 0,
        "attempts": attempts,
        "rejectedBy": ["hello"],
        "waitsFor": [],
        "nomination": None,
        "awaited": [{"plugin": "hello", "resource": name, "actions": actions} for name, actions in awaited],
    }
    answer = {
        "pod": "default/second",
        "profile": "default-scheduler",
        "cause": "The pod fits on no node.",
        "remedy": "",
        "state": state,
        "proposals": [],
        "proposalsCutShort": "",
        "nodes": None,
        "attempts": [{**ATTEMPT, "traceId": trace}],
    }
    return [*page_of(answer, wide=False)]


@pytest.mark.parametrize(("trace", "ends"), [("5216", "8.8 ms, trace 5216"), ("", "8.8 ms")])
def test_an_attempt_names_its_trace_if_it_has_one(trace, ends):
    assert page(trace=trace)[-1].endswith(ends)


@pytest.mark.parametrize(("attempts", "expected"), [(1, "after 1 attempt"), (2, "after 2 attempts")])
def test_attempts_are_counted_in_words(attempts, expected):
    (state,) = [line for line in page(attempts=attempts) if line.startswith("State:")]

    assert expected == state.rpartition(", ")[2]


def test_news_of_a_plugin_are_named_as_such():
    """The name under which they stand among resources is the scheduler's own."""
    awaited = [("Node", ["Add", "UpdateNodeLabel"]), ("hello.news.plugins.berth.dev", ["Update"])]
    lines = [line.strip() for line in page(awaited=awaited) if "brought back" in line]

    assert [
        "brought back for hello by Add, UpdateNodeLabel of Node",
        "brought back for hello when the plugin says so",
    ] == lines
