"""Runs checks one after another against one plugin."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from fnmatch import fnmatch

import grpc.aio

import berth.conformance.checks  # noqa: F401 - enters all checks into the list
from berth.conformance.check import CHECKS, Check
from berth.conformance.errors import UnmetError, UnsuitableError
from berth.conformance.occupancy import ensure_unused, leave
from berth.conformance.report import CheckOutcome, CheckResult
from berth.conformance.subject import (
    PluginUnderTest,
    PluginUnreachableError,
    VerifyOptions,
    brief,
    channel_of,
)
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.transport.rpc import RpcError

BUILDS_UPON = "builds upon"


def chosen(only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[Check]:
    """The checks whose ids match one of `only`, if given, and none of `skip`; patterns as in a shell."""
    return [
        each
        for each in CHECKS.values()
        if (not only or any(fnmatch(each.id, pattern) for pattern in only))
        and not any(fnmatch(each.id, pattern) for pattern in skip)
    ]


async def verify(
    options: VerifyOptions, checks: Iterable[Check], report: Callable[[CheckResult], None] = lambda _: None
) -> tuple[PluginUnderTest, list[CheckResult]]:
    """Run the checks; `report` hears of each as it ends.

    Raises: UnreachableError where no plugin answers at the address, InUseError where a scheduler uses it.
    """
    results: dict[str, CheckResult] = {}
    async with channel_of(options) as channel:
        subject = PluginUnderTest(options, channel)
        await _introduced(subject)
        if not options.in_use:
            await ensure_unused(subject)
        for each in checks:
            result = results[each.id] = await _result(subject, each, results)
            report(result)
        subject.open = AsyncExitStack()
        await leave(subject)
    return subject, list(results.values())


async def _introduced(subject: PluginUnderTest) -> None:
    """Learn the capabilities; a plugin that can't say them has its checks tell so."""
    try:
        async with asyncio.timeout(subject.options.seconds):
            await subject.channel.channel_ready()
    except TimeoutError:
        raise PluginUnreachableError(f"no plugin answers at {subject.options.address}") from None
    try:
        subject.introduction = await subject.shake_hands()
    except (grpc.aio.AioRpcError, UnmetError):
        return


async def _result(subject: PluginUnderTest, check: Check, results: Mapping[str, CheckResult]) -> CheckResult:
    started = time.perf_counter()
    outcome, text = await _outcome(subject, check, results)
    return CheckResult(check, outcome, text, time.perf_counter() - started)


async def _outcome(
    subject: PluginUnderTest, check: Check, results: Mapping[str, CheckResult]
) -> tuple[CheckOutcome, str]:
    if why := _excuse(subject, check, results):
        return CheckOutcome.SKIP, why
    subject.open = AsyncExitStack()
    try:
        async with subject.open:
            await check.run(subject)
    except UnsuitableError as reason:
        return CheckOutcome.SKIP, str(reason)
    except (UnmetError, ProtocolError) as error:
        return CheckOutcome.FAIL, str(error)
    except (grpc.aio.AioRpcError, RpcError) as error:
        came = RpcError.of(error)
        return CheckOutcome.FAIL, f"expected an answer, came {came.code.name}: {brief(came.text)}"
    except Exception as error:  # noqa: BLE001 - whatever a plugin's answer leads to is its failure
        return (
            CheckOutcome.FAIL,
            f"expected an answer that makes sense, came {type(error).__name__}: {brief(error)}",
        )
    return CheckOutcome.PASS, ""


def _excuse(subject: PluginUnderTest, check: Check, results: Mapping[str, CheckResult]) -> str:
    for name in check.needs:
        if not subject.offers(name):
            return f"not announced: {name}"
    for before in check.after:
        if before in results and (results[before].outcome is CheckOutcome.FAIL or _blocked(results[before])):
            return f"{BUILDS_UPON} {before}, which failed"
    return ""


def _blocked(result: CheckResult) -> bool:
    """Whether a check was skipped for the failure of another."""
    return result.outcome is CheckOutcome.SKIP and result.text.startswith(BUILDS_UPON)
