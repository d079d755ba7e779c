"""What a group comes to by the number of its pods that have a node, and in which words."""

from types import SimpleNamespace

import pytest

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import GroupFitError
from berth.framework.interface import PlacementFeasiblePlugin, PlacementProgress
from berth.framework.status import SUCCESS, Code, Status, failed, unschedulable
from berth.pod_groups.counting import Counting
from berth.pod_groups.group_result import GroupResult
from berth.snapshot.pod_group_states import GroupKey
from tests.fakes import Named

KEY = GroupKey("default", "g")
WAIT = Status(Code.WAIT, ("not yet",))
PREFIX = "pod group is unschedulable"


class Says(Named, PlacementFeasiblePlugin):
    """Gives one answer, or raises it."""

    def __init__(self, name, answer):
        super().__init__(name)
        self.answer = answer

    def placement_feasible(self, state, group, progress):
        del state, group, progress
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def verdict(*answers, names_plugins=False, tried=True):
    plugins = [Says(f"P{i}", answer) for i, answer in enumerate(answers)]
    framework = SimpleNamespace(placement_feasible=plugins)
    counting, progress = Counting(names_plugins), PlacementProgress(1, 1)
    return await counting.verdict(framework, CycleState(), KEY, progress, tried=tried)


@pytest.mark.parametrize(
    ("answers", "code", "goes_on"),
    [
        ([], Code.SUCCESS, True),
        ([SUCCESS, SUCCESS], Code.SUCCESS, True),
        ([SUCCESS, WAIT], Code.UNSCHEDULABLE, True),
        ([WAIT, unschedulable("no"), SUCCESS], Code.UNSCHEDULABLE, False),
        ([unschedulable("no"), WAIT], Code.UNSCHEDULABLE, False),
        ([unschedulable("no"), failed("broken")], Code.ERROR, False),
        ([RuntimeError("broken")], Code.ERROR, False),
    ],
)
@pytest.mark.parametrize("names_plugins", [False, True])
async def test_the_worst_answer_counts(answers, code, goes_on, names_plugins):
    """An error ends the attempt, and so does a rejection; one that waits goes on, but is no success."""
    status, more = await verdict(*answers, names_plugins=names_plugins)

    assert (code, goes_on) == (status.code, more)


@pytest.mark.parametrize(
    ("answer", "tried", "words"),
    [
        (unschedulable("no"), True, "no"),
        (unschedulable("no"), False, f"{PREFIX}, no"),
        (WAIT, True, f"{PREFIX}, not yet"),
        (failed("broken"), True, "failed to evaluate placement feasibility: broken"),
    ],
)
async def test_words(answer, tried, words):
    """Up to 1.37 a group that is turned down before a pod was tried has a text before the plugin's."""
    assert words == (await verdict(answer, tried=tried))[0].message


@pytest.mark.parametrize(("answer", "words"), [(unschedulable("no"), "no"), (WAIT, "not yet")])
async def test_words_that_name_plugins(answer, words):
    """From 1.38 on the plugin's words are all, and it is the one that turned the group down."""
    status, _ = await verdict(SUCCESS, answer, names_plugins=True, tried=False)

    assert words == status.message
    assert isinstance(status.error, GroupFitError)
    assert {"P1"} == status.error.plugins


@pytest.mark.parametrize(("names_plugins", "words"), [(False, PREFIX), (True, "no pods were schedulable")])
def test_no_group_succeeds_without_a_pod(names_plugins, words):
    """Where the pods that run already are enough, and none of the others finds a node."""
    result = GroupResult(SUCCESS)
    Counting(names_plugins).whole(result)

    assert (Code.UNSCHEDULABLE, words) == (result.status.code, result.status.message)


async def test_the_first_placement_is_quoted_with_its_plugins():
    """They turned the group down."""
    first, _ = await verdict(unschedulable("no"), names_plugins=True)
    status = Counting(names_plugins=True).nowhere(first, 4)

    assert "0/4 placements are available, first placement status: no" == status.message
    assert {"P0"} == status.error.plugins
