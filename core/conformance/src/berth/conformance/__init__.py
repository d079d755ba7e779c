"""The conformance kit: checks that a plugin keeps the protocol, for `berth plugin verify` and for tests."""

from berth.conformance.check import CHECKS, Check
from berth.conformance.report import CheckOutcome, CheckResult, as_json, lacks_of, line_of, summary_of
from berth.conformance.runner import chosen, verify
from berth.conformance.subject import InUseError, PluginUnreachableError, VerifyOptions

__all__ = [
    "CHECKS",
    "Check",
    "CheckOutcome",
    "CheckResult",
    "InUseError",
    "PluginUnreachableError",
    "VerifyOptions",
    "as_json",
    "chosen",
    "lacks_of",
    "line_of",
    "summary_of",
    "verify",
]
