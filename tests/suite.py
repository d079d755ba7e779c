"""What the whole suite keeps to: chance that is the same every day, strategies that filter little."""

import re
from collections import Counter

ORDER_SEED = 1
"""Of the order of tests, unless another one is given."""
_TRIED = re.compile(r"(\d+) passing, (\d+) failing, and (\d+) invalid test cases")


def filtered_too_much(statistics):
    """Whether more than half of what a property test drew was filtered out, by Hypothesis's statistics."""
    tried = [tuple(map(int, counts)) for counts in _TRIED.findall(statistics)]
    used = sum(passing + failing for passing, failing, _ in tried)
    return sum(invalid for *_, invalid in tried) > used


def reasons_of_skips(reports):
    """A line for each reason, the most frequent first."""
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    return [f"SKIPPED [{count}] {reason}" for reason, count in reasons.most_common()]
