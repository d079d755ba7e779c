"""Several schedulers' answers about one node."""

from berth.explain.overviews import MAX_CLASSES
from berth.explain.schema import ExplainedClass, NodeExplanation
from berth.explain.several_answers import merged


def answer(profile, *classes, **fields):
    """An answer about n1 with these classes of pods: how many, and whether they fit."""
    found = [ExplainedClass(profile=profile, count=count, pods=[], fits=fits) for count, fits in classes]
    return NodeExplanation(node="n1", cause="", pods=7, classes=found, **fields)


def test_the_waiting_pods_of_all():
    """Those that fit come first, and the cause counts all of them."""
    first = answer("a", (2, True), (5, False), waiting=7, fitting=2, nominated=["d/x", "d/y"])
    second = answer("b", (3, True), waiting=4, fitting=3, nominated=["d/y"], classes_left_out=1)

    found = merged([first, second], [])

    assert ("n1", 7, 11, 5) == (found.node, found.pods, found.waiting, found.fitting)
    assert "5 of 11 waiting pods would fit on the node now, one at a time." == found.cause
    assert [("b", 3), ("a", 2), ("a", 5)] == [(one.profile, one.count) for one in found.classes]
    assert (["d/x", "d/y"], 1, "") == (found.nominated, found.classes_left_out, found.cut_short)


def test_what_is_missing_is_said():
    found = merged([answer("a", cut_short="costly"), answer("b", cut_short="costly")], ["c does not answer"])

    assert ("No pod waits.", "costly; c does not answer") == (found.cause, found.cut_short)


def test_the_answer_is_bounded():
    """However many schedulers there are; what is left out is counted."""
    many = [answer(f"s{i}", *[(1, False)] * MAX_CLASSES) for i in range(3)]

    found = merged(many, [])

    assert (MAX_CLASSES, 2 * MAX_CLASSES) == (len(found.classes), found.classes_left_out)
