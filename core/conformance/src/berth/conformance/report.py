"""What came of the checks, as lines to read and as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from berth.conformance.check import Check
from berth.conformance.subject import PluginUnderTest


class CheckOutcome(StrEnum):
    """What came of a check."""

    PASS = "PASS"  # noqa: S105 - an outcome, no secret
    FAIL = "FAIL"
    SKIP = "SKIP"


class CheckResult(msgspec.Struct, frozen=True):
    """What came of one check; `text` says why it failed or was skipped."""

    check: Check
    outcome: CheckOutcome
    text: str = ""
    seconds: float = 0.0


def line_of(result: CheckResult) -> str:
    """One line, and what was expected and what came below a failure."""
    line = f"{result.outcome}  {result.check.id:<36}  {result.check.title}"
    if result.outcome is CheckOutcome.FAIL:
        return f"{line}\n      {result.text}\n      docs/protocol.md, {result.check.clause!r}"
    return f"{line} ({result.text})" if result.text else line


def lacks_of(subject: PluginUnderTest) -> Iterator[str]:
    """A line for each thing that no sample made the plugin do: the checks say little about it."""
    return (f"NOT TRIED  {each}" for each in subject.tried.lacks(subject.capabilities))


def summary_of(results: Iterable[CheckResult]) -> str:
    """How many passed, failed and were skipped."""
    counts = Counter(result.outcome for result in results)
    passed, failed, skipped = counts[CheckOutcome.PASS], counts[CheckOutcome.FAIL], counts[CheckOutcome.SKIP]
    return f"{passed} passed, {failed} failed, {skipped} skipped"


def as_json(subject: PluginUnderTest, results: Iterable[CheckResult]) -> str:
    """The report for machines."""
    said = subject.introduction
    results = list(results)
    counts = Counter(result.outcome for result in results)
    document = {
        "plugin": said.name,
        "version": said.version,
        "address": subject.options.address,
        "protocolVersion": 1,
        "counts": {outcome.lower(): counts[outcome] for outcome in CheckOutcome},
        "checks": [
            {
                "id": result.check.id,
                "title": result.check.title,
                "clause": result.check.clause,
                "outcome": result.outcome.lower(),
                "text": result.text,
                "seconds": round(result.seconds, 6),
            }
            for result in results
        ],
        "notTried": list(subject.tried.lacks(said.capabilities)),
    }
    return json.dumps(document, indent=2)
