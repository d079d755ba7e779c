"""Two answers to one question: what they say differently."""

from collections.abc import Collection

from berth.out_of_tree.transport.rpc import RpcError
from berth.replay.meaning import STATUS, WHERE_BOTH, Meaning
from berth.replay.replay_result import AnswerChange

NOTHING = "nothing"
_IGNORED_KINDS = {"scores": ("scores", "score", "normalization"), "hints": ("hint",)}
_WITH_REASONS = ("node", "status", "scores")


def changes(was: Meaning, now: Meaning, ignore: Collection[str] = ()) -> tuple[AnswerChange, ...]:
    """What one says otherwise than the other; `ignore` holds scores, reasons, hints.

    Where the one is a verdict and the other none, that is all there is to say.
    """
    ignored = {kind for word in ignore for kind in _IGNORED_KINDS.get(word, ())}
    found = []
    for subject in [STATUS] if _verdicts_differ(was, now) else {**was, **now}:
        before, after = was.get(subject), now.get(subject)
        if before == after or subject.kind in ignored:
            continue
        if subject.kind in WHERE_BOTH and (before is None or after is None):
            continue
        if "reasons" in ignore and subject.kind in _WITH_REASONS and _decision(before) == _decision(after):
            continue
        found.append(AnswerChange(subject.kind, subject.name, before or NOTHING, after or NOTHING))
    return tuple(found)


def _verdicts_differ(was: Meaning, now: Meaning) -> bool:
    return _decision(was.get(STATUS)) != _decision(now.get(STATUS))


def _decision(text: str | None) -> str | None:
    """What was decided, without why."""
    return text and text.partition(":")[0]


def failure(error: RpcError) -> Meaning:
    """What a call that failed says."""
    return {STATUS: str(error)}
