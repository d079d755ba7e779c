"""No node gives more than it has, in any resource that its pods ask for."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from berth.demo.checker.documents import CheckedPod, NodeFacts
from berth.demo.checker.quantity import as_text
from berth.demo.checker.report import Rule, Violation


def check_capacity(node: NodeFacts, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """Compare the sum of what the node's pods take with its allocatable amounts, one resource at a time."""
    takers: Counter[str] = Counter()
    taken: dict[str, Fraction] = {"pods": Fraction(len(pods))}
    for pod in pods:
        takers.update(("pods", *(name for name, amount in pod.requests.items() if amount)))
        for name, amount in pod.requests.items():
            taken[name] = taken.get(name, Fraction(0)) + amount
    for name, amount in taken.items():
        offered = node.allocatable.get(name, Fraction(0))
        if amount > offered:
            sums = f"{as_text(amount)} taken by {takers[name]} pods, {as_text(offered)} offered"
            yield Violation(Rule.OVERCOMMITTED, f"node {node.name}", f"{name}: {sums}")
