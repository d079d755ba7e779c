"""Which modules read the wall clock, and what for: none of them waits by it."""

import ast

import pytest

from berth.framework.clock import wall_time
from berth.testing.handles import ManualClock
from tests import sources

WRITTEN = "a time that is written to the API"
SHOWN = "a time that is shown, logged or written to a file"
OF_THE_API = "compared with a time that an object of the API carries"
VIRTUAL = "a simulation's own time, in which no clock is set"

READERS = {
    "binding/binding_cycle.py": WRITTEN,
    "commands/deschedule.py": OF_THE_API,
    "commands/snapshot.py": SHOWN,
    "client/events.py": WRITTEN,
    "client/leases.py": WRITTEN,
    "cycle/attempts.py": SHOWN,
    "cycle/failure.py": WRITTEN,
    "cycle/gated_pods.py": WRITTEN,
    "framework/clock.py": SHOWN,
    "recordings/cluster/files.py": SHOWN,
    "operator/kube_scheduler.py": OF_THE_API,
    "operator/process.py": WRITTEN,
    "out_of_tree/connections/connection.py": SHOWN,
    "out_of_tree/connections/last_failures.py": SHOWN,
    "recordings/calls/recording.py": SHOWN,
    "plugins/dynamic_resources/binding.py": WRITTEN,
    "plugins/dynamic_resources/allocation_ages.py": OF_THE_API,
    "pod_groups/conditions.py": WRITTEN,
    "preemption/eviction.py": WRITTEN,
    "preemption/evaluator.py": OF_THE_API,
    "scheduler/leading/lease_condition.py": WRITTEN,
    "serving/component_pages.py": SHOWN,
    "simulation/running/engine.py": VIRTUAL,
    "simulation/placing/one_by_one.py": VIRTUAL,
    "simulation/plugins/outside_host.py": VIRTUAL,
    "simulation/plugins/outside_plugins.py": VIRTUAL,
    "simulation/cluster/writers.py": VIRTUAL,
    "recordings/core/recording.py": SHOWN,
    "recordings/core/spans.py": SHOWN,
}


def reads_the_wall_clock(path):
    text = path.read_text()
    return ".wall" in text and any(
        isinstance(node, ast.Attribute) and node.attr == "wall" for node in ast.walk(ast.parse(text))
    )


def test_every_reader_of_the_wall_clock_is_known():
    """A new one belongs here with its reason; what is waited for is read from `monotonic()`."""
    found = {name for name, path in sources.modules().items() if reads_the_wall_clock(path)}

    assert READERS.keys() == found


@pytest.mark.parametrize("step", [-3600.0, 0.0, 3600.0])
def test_a_moment_is_shown_by_the_wall_clock_of_now(step):
    """Whoever reads it compares it with a clock that was set, too."""
    clock = ManualClock(1000.0)
    moment = clock.monotonic() + 60
    clock.ahead += step

    assert 1060.0 + step == wall_time(clock, moment)
