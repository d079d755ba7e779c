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
from berth.conformance.report import Outcome, Result
from berth.conformance.subject import Options, Subject, UnreachableError, brief, channel_of
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
    options: Options, checks: Iterable[Check], report: Callable[[Result], None] = lambda _: None
) -> tuple[Subject, list[Result]]:
    """Run the checks; `report` hears of each as it ends.

    Raises: UnreachableError where no plugin answers at the address, InUseError where a scheduler uses it.
    """
    results: dict[str, Result] = {}
    async with channel_of(options) as channel:
        subject = Subject(options, channel)
        await _introduced(subject)
        if not options.in_use:
            await ensure_unused(subject)
        for each in checks:
            result = results[each.id] = await _result(subject, each, results)
            report(result)
        subject.open = AsyncExitStack()
        await leave(subject)
    return subject, list(results.values())


async def _introduced(subject: Subject) -> None:
    """Learn the capabilities; a plugin that can't say them has its checks tell so."""
    try:
        async with asyncio.timeout(subject.options.seconds):
            await subject.channel.channel_ready()
    except TimeoutError:
        raise UnreachableError(f"no plugin answers at {subject.options.address}") from None
    try:
        subject.introduction = await subject.shake_hands()
    except (grpc.aio.AioRpcError, UnmetError):
        return


async def _result(subject: Subject, check: Check, results: Mapping[str, Result]) -> Result:
    started = time.perf_counter()
    outcome, text = await _outcome(subject, check, results)
    return Result(check, outcome, text, time.perf_counter() - started)


async def _outcome(subject: Subject, check: Check, results: Mapping[str, Result]) -> tuple[Outcome, str]:
    if why := _excuse(subject, check, results):
        return Outcome.SKIP, why
    subject.open = AsyncExitStack()
    try:
        async with subject.open:
            await check.run(subject)
    except UnsuitableError as reason:
        return Outcome.SKIP, str(reason)
    except (UnmetError, ProtocolError) as error:
        return Outcome.FAIL, str(error)
    except (grpc.aio.AioRpcError, RpcError) as error:
        came = RpcError.of(error)
        return Outcome.FAIL, f"expected an answer, came {came.code.name}: {brief(came.text)}"
    except Exception as error:  # noqa: BLE001 - whatever a plugin's answer leads to is its failure
        return (
            Outcome.FAIL,
            f"expected an answer that makes sense, came {type(error).__name__}: {brief(error)}",
        )
    return Outcome.PASS, ""


def _excuse(subject: Subject, check: Check, results: Mapping[str, Result]) -> str:
    for name in check.needs:
        if not subject.offers(name):
            return f"not announced: {name}"
    for before in check.after:
        if before in results and (results[before].outcome is Outcome.FAIL or _blocked(results[before])):
            return f"{BUILDS_UPON} {before}, which failed"
    return ""


def _blocked(result: Result) -> bool:
    """Whether a check was skipped for the failure of another."""
    return result.outcome is Outcome.SKIP and result.text.startswith(BUILDS_UPON)
