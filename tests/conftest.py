"""Settings of the whole suite."""

import gc
import os
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import reaper
from tests.suite import (
    LOOP_VARIABLE,
    LOOPS,
    ORDER_SEED,
    filtered_too_much,
    loop_of,
    own_share_first,
    reasons_of_skips,
    slow_ones_first,
)

# As `berth` has it, before gRPC is imported: tests start programs while they make calls.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A deadline for an example, or for drawing some, would be a timed assertion: it fails on a busy machine
# for no fault of the code. Where CI is set, Hypothesis has a profile of its own, which is derandomized:
# it would explore nothing.
settings.register_profile(
    "explore",
    settings.get_profile("default"),
    deadline=None,
    database=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# The same examples on every machine and day, and fewer of them; `make explore` looks for others.
settings.register_profile("suite", settings.get_profile("explore"), derandomize=True, max_examples=30)
settings.load_profile("suite")

WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """End what tests leave when they end or are killed; shuffle them in the same way every time."""
    watched = ExitStack()
    watched.enter_context(reaper.watching())
    config.add_cleanup(watched.close)
    if getattr(config.option, "randomly_seed", None) == "default":
        config.option.randomly_seed = ORDER_SEED


def import_before_others():
    """Import the modules of tests, so that each is compiled by one worker; what fails is reported later."""
    root = Path(__file__).parents[1]
    files = sorted(root.glob("tests/**/test_*.py"))
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in files]
    for name in own_share_first(names, os.environ.get("PYTEST_XDIST_WORKER", "gw0"), WORKERS):
        with suppress(Exception, pytest.skip.Exception):
            import_module(name)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Leave modules and tests out of what is collected as garbage: looking at them takes 0.25 s each time."""
    gc.disable()
    try:
        if WORKERS > 1 and session.config.args == session.config.getini("testpaths"):
            import_before_others()
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with what takes longest."""
    items[:] = slow_ones_first(items, WORKERS)


def pytest_asyncio_loop_factories(item):
    """Run a test on one of the event loops that are shipped."""
    name = loop_of(item.nodeid)
    return {name: LOOPS[name]}


@pytest.fixture(scope="module", autouse=True)
def _loop_of_module(request):
    """Have the processes that a module's tests share run on one of the event loops that are shipped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOOP_VARIABLE, loop_of(request.node.nodeid))
        yield


@pytest.fixture(autouse=True)
def _loop_of_test(request, monkeypatch):
    """Have the processes that a test starts run on one of the event loops that are shipped."""
    monkeypatch.setenv(LOOP_VARIABLE, loop_of(request.node.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a property test that filters most of what it draws, where what it draws is always the same."""
    result = yield
    if settings.default.derandomize and filtered_too_much(getattr(item, "hypothesis_statistics", "")):
        pytest.fail(f"most of what it draws is filtered out\n{item.hypothesis_statistics}", pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter):
    """Say in a line for each reason why tests were skipped."""
    if lines := reasons_of_skips(terminalreporter.stats.get("skipped", ())):
        terminalreporter.section("skipped")
        for line in lines:
            terminalreporter.write_line(line)
