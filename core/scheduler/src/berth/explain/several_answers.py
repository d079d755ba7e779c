"""Answers of several schedulers about one node in one: each knows which of its own pods wait."""

from collections.abc import Sequence
from itertools import chain

import msgspec

from berth.explain.overviews import MAX_CLASSES, MAX_EXAMPLES, cause_of_node, fitting_first
from berth.explain.schema import NodeExplanation


def merged(answers: Sequence[NodeExplanation], failures: Sequence[str]) -> NodeExplanation:
    """The node as the first answer has it, with the waiting pods of all; `failures` say who is left out."""
    first = answers[0]
    waiting, fitting = sum(one.waiting for one in answers), sum(one.fitting for one in answers)
    classes = sorted(chain.from_iterable(one.classes for one in answers), key=fitting_first)
    left_out = sum(one.classes_left_out for one in answers) + max(0, len(classes) - MAX_CLASSES)
    nominated = dict.fromkeys(chain.from_iterable(one.nominated for one in answers))
    cut_short = dict.fromkeys((*(one.cut_short for one in answers if one.cut_short), *failures))
    return msgspec.structs.replace(
        first,
        cause=cause_of_node(waiting, fitting),
        waiting=waiting,
        fitting=fitting,
        nominated=list(nominated)[:MAX_EXAMPLES],
        classes=classes[:MAX_CLASSES],
        classes_left_out=left_out,
        cut_short="; ".join(cut_short),
    )
