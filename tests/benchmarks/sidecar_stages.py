"""Where the time of one call to a sidecar goes, from the step of the state to scores that can be added up."""

import time
from contextlib import contextmanager
from functools import wraps

from berth.out_of_tree.calls import Caller
from berth.out_of_tree.cluster_state.state_feed import StateFeed
from berth.out_of_tree.points.node_questions import NodeQuestion
from berth.out_of_tree.transport.ttrpc import Ttrpc
from tests.benchmarks.tables import Table, quantiles

MARKED = (
    (StateFeed, "follow"),
    (Caller, "head"),
    (Ttrpc, "send"),
    (Ttrpc, "_deliver"),
    (NodeQuestion, "_verdicts"),
    (NodeQuestion, "_read_scores"),
)
"""In the order of a call."""
STAGES = {
    "the state's step is made a message": ("follow begins", "follow ends"),
    "the call's head": ("head begins", "head ends"),
    "deadline, span, message": ("head ends", "send ends"),
    "written, answered, read: the socket and the plugin": ("send ends", "_deliver begins"),
    "the answer finds its call": ("_deliver begins", "_verdicts begins"),
    "verdicts read": ("_verdicts begins", "_verdicts ends"),
    "scores read": ("_read_scores begins", "_read_scores ends"),
}


def table_of(found):
    """A column for each language; `found` has the marks of each of its calls."""
    table = Table("one call to a sidecar, by stages, µs p50", ["stage", *found])
    for stage, (begin, end) in STAGES.items():
        cells = []
        for calls in found.values():
            taken = [(marks[end] - marks[begin]) * 1e6 for marks in calls if {begin, end} <= marks.keys()]
            cells.append(quantiles(taken, 0.5)[0])
        table.add(stage, *cells)
    return table


@contextmanager
def marked():
    """What is noted, function by function: when it last began and ended."""
    marks, plain = {}, [(owner, name, getattr(owner, name)) for owner, name in MARKED]
    for owner, name, function in plain:
        setattr(owner, name, noting(marks, name, function))
    try:
        yield marks
    finally:
        for owner, name, function in plain:
            setattr(owner, name, function)


def noting(marks, name, function):
    @wraps(function)
    def noted(*arguments, **named):
        marks[f"{name} begins"] = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            marks[f"{name} ends"] = time.perf_counter()

    return noted
