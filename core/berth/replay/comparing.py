"""Two answers to one question: what they say differently."""

from collections.abc import Collection
from typing import Any

from berth.replay.meaning import STATUS, WHERE_BOTH, Meaning, Subject
from berth.replay.outcome import Change

NOTHING = "nothing"
_IGNORED_KINDS = {"scores": ("scores", "score", "normalization"), "hints": ("hint",)}
_WITH_REASONS = ("node", "status", "scores")


def changes(was: Meaning, now: Meaning, ignore: Collection[str] = ()) -> tuple[Change, ...]:
    """What one says otherwise than the other; `ignore` holds scores, reasons, hints.

    Where the one is a verdict and the other none, that is all there is to say.
    """
    ignored = {kind for word in ignore for kind in _IGNORED_KINDS.get(word, ())}
    found = []
    for subject in [STATUS] if _verdicts_differ(was, now) else {**was, **now}:
        both = subject in was and subject in now
        if subject.kind in ignored or (subject.kind in WHERE_BOTH and not both):
            continue
        before, after = (_shown(each, subject, ignore) for each in (was, now))
        if before != after:
            found.append(Change(subject.kind, subject.name, before, after))
    return tuple(found)


def _verdicts_differ(was: Meaning, now: Meaning) -> bool:
    before, after = (each.get(STATUS, NOTHING).partition(":")[0] for each in (was, now))
    return before != after


def _shown(meaning: Meaning, subject: Subject, ignore: Collection[str]) -> str:
    text = meaning.get(subject, NOTHING)
    reasons_matter = "reasons" not in ignore or subject.kind not in _WITH_REASONS
    return text if reasons_matter else text.partition(":")[0]


def failure(error: Any) -> Meaning:
    """What a call that failed says."""
    return {STATUS: f"{error.code().name}: {error.details()}"}
