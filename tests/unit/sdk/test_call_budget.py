"""What the SDK itself does for one call, in functions entered: most of what a quick plugin costs."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import berth_sdk
from berth_plugin_proto import common_pb2, scheduling_pb2
from berth_sdk import Plugin, Reason
from berth_sdk.dispatch import UNARY, Dispatch
from berth_sdk.session import Session
from berth_sdk.testing import Cluster, make_node, make_pod
from berth_sdk.tracing import Tracing
from berth_sdk.waiting import begin

SDK = str(Path(berth_sdk.__file__).parent)
NOT_SAMPLED = ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
BUDGET = 58
"""A filter and score in vector forms, with a pod that the call's delta brings."""
BUDGET_OF_SPANS = 8
"""What is added where spans are collected, and the call is not sampled."""
POD = b'{"metadata": {"name": "p", "uid": "p"}}'


class Vectors(Plugin):
    name = "vectors"
    reasons = (Reason("odd"),)

    def filter_nodes(self, _pod, nodes):
        return np.arange(len(nodes)) % 2 == 0

    def score_nodes(self, _pod, nodes):
        return np.arange(len(nodes))


def entered(work):
    """The SDK's functions that the work enters, and how often."""
    found = Counter()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SDK):
            found[code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def asked(exporters):
    """A filter and score that is asked for a second time, with the functions entered."""
    session, cluster = Session(Vectors()), Cluster()
    dispatch = Dispatch(session, Tracing("vectors", "1", exporters))
    session.profiles.add("default-scheduler")
    session.mirror.epoch, session.mirror.generation = "e", 1
    for i in range(9):
        cluster.put_node(make_node(f"n{i}"))
    session.mirror.follow(cluster.step())
    function, _ = UNARY["SchedulingService"]["FilterScore"]

    def ask():
        cluster.put_pod(make_pod(f"placed-{cluster.generation}"), "n1")
        delta = cluster.step()
        ref = common_pb2.PodRef(uid="p", attempt=delta.generation, object=POD)
        call = common_pb2.Call(
            epoch="e", generation=delta.generation, profile="default-scheduler", deltas=[delta], pod=ref
        )
        request = scheduling_pb2.FilterScoreRequest(call=call)
        answers = []
        counted = entered(
            lambda: answers.append(begin(dispatch.call("FilterScore", function, request, [NOT_SAMPLED])))
        )
        return answers[0], counted

    ask()
    return ask()


def test_a_call_enters_few_functions():
    """The way from the request to the answer is a short one."""
    answer, counted = asked(())

    assert b"\0\1\0\1\0\1\0\1\0" == answer.filter.verdicts.each
    assert counted.total() <= BUDGET, counted


def test_a_call_that_is_not_sampled():
    """It costs little more than one without spans."""
    _, without = asked(())
    _, counted = asked([InMemorySpanExporter()])

    assert counted.total() - without.total() <= BUDGET_OF_SPANS, counted - without
