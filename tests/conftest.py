"""Settings of the whole suite."""

import os

import pytest
from hypothesis import settings

from tests.suite import ORDER_SEED, filtered_too_much, reasons_of_skips

# As `berth` has it, before gRPC is imported: tests start programs while they make calls.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A deadline for an example would be a timed assertion: it fails on a busy machine for no fault of the code.
settings.register_profile("explore", deadline=None, database=None, print_blob=True)
# The same examples on every machine and day; `make explore` looks for others.
settings.register_profile("suite", settings.get_profile("explore"), derandomize=True)
settings.load_profile("suite")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Shuffle the tests in the same way every time."""
    if getattr(config.option, "randomly_seed", None) == "default":
        config.option.randomly_seed = ORDER_SEED


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
