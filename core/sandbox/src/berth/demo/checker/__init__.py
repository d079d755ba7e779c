"""Prove from the API's state alone that a scheduler did right, and sum up what it did.

`check` takes nodes, pods and events as documents; `check_api` fetches them first. Nothing here shares code
with the scheduler, not even its parsing of quantities: a mistake there must not hide itself.
"""

from berth.demo.checker.check import check
from berth.demo.checker.fetch import ApiState, UnreadableAnswerError, check_api, fetch_state
from berth.demo.checker.report import CheckReport, Rule, Violation
from berth.demo.checker.summary import ClusterSummary, summary

__all__ = [
    "ApiState",
    "CheckReport",
    "ClusterSummary",
    "Rule",
    "UnreadableAnswerError",
    "Violation",
    "check",
    "check_api",
    "fetch_state",
    "summary",
]
