"""What `berth plugin verify` does: the checks chosen, run and reported, and its exit code."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click
import yaml

from berth.cli.failing import EXIT_FAILED, fail
from berth.config.out_of_tree.sidecars import PluginTls
from berth.conformance import (
    CHECKS,
    Check,
    CheckOutcome,
    CheckResult,
    InUseError,
    PluginUnreachableError,
    VerifyOptions,
    as_json,
    chosen,
    lacks_of,
    line_of,
    summary_of,
)
from berth.conformance import verify as run_checks

LOOK_SECONDS = 0.05


def verified(
    address: str | None, *, listing: bool, only: tuple[str, ...], skip: tuple[str, ...], **given: Any
) -> None:
    """Run the checks, or list them; ends the program with 1 where one failed, 2 where none could be run."""
    checks = chosen(only, skip)
    if not checks:
        fail(f"no check matches; there are {', '.join(CHECKS)}")
    if listing:
        _list(checks, given["output"])
        return
    if address is None:
        fail("give the plugin's ADDRESS, such as unix:/run/berth/my-plugin.sock")
    results = _run(_options(address, given), checks, given["output"])
    if any(result.outcome is CheckOutcome.FAIL for result in results):
        sys.exit(EXIT_FAILED)


def _list(checks: list[Check], output: str) -> None:
    if output == "json":
        fields = ("id", "title", "clause", "needs", "after")
        click.echo(json.dumps([{name: getattr(each, name) for name in fields} for each in checks], indent=2))
    else:
        for each in checks:
            click.echo(f"{each.id:<36}  {each.title}")


def _run(options: VerifyOptions, checks: list[Check], output: str) -> list[CheckResult]:
    text = output == "text"
    try:
        subject, results = asyncio.run(
            run_checks(options, checks, lambda result: click.echo(line_of(result)) if text else None)
        )
    except (InUseError, PluginUnreachableError) as error:
        fail(error)
    if not text:
        click.echo(as_json(subject, results))
        return results
    for line in lacks_of(subject):
        click.echo(line)
    said = subject.introduction
    click.echo(f"{said.name} {said.version}: {summary_of(results)}")
    return results


def _options(address: str, given: dict[str, Any]) -> VerifyOptions:
    return VerifyOptions(
        address,
        tls=tls_of(given["ca"], given["cert"], given["key"]),
        arguments=_arguments(given["arguments"]),
        profile=given["profile"],
        nodes=_documents(given["nodes"]),
        pods=_documents(given["pods"]),
        objects=_documents(given["objects"], needed=()),
        in_use=given["in_use"],
        many_nodes=given["many_nodes"],
        seconds=given["timeout"],
        seed=given["seed"],
        trace_file=given["trace_file"],
        stop=None if given["pid"] is None else _ending(given["pid"]),
    )


def tls_of(authority: Path | None, certificate: Path | None, key: Path | None) -> PluginTls | None:
    """What --ca, --cert and --key come to; they come together."""
    if authority is None and certificate is None and key is None:
        return None
    if authority is None or certificate is None or key is None:
        fail("give all of --ca, --cert and --key, or none")
    return PluginTls(str(authority), str(certificate), str(key))


def _arguments(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        fail(f"--args: {error}: write a JSON object")


def _documents(path: Path | None, needed: tuple[str, ...] = ("spec",)) -> tuple[dict[str, Any], ...]:
    if path is None:
        return ()
    try:
        found = [each for each in yaml.safe_load_all(path.read_text()) if each]
    except yaml.YAMLError as error:
        fail(f"{path}: {error}")
    documents = [item for each in found for item in each.get("items", [each])]
    for each in documents:
        if "name" not in (each.get("metadata") or {}) or any(name not in each for name in needed):
            lacks = " or ".join(("metadata.name", *needed))
            fail(f"{path}: an object lacks {lacks}: write them as the API server has them")
    return tuple(documents)


def _ending(pid: int) -> Callable[[], Awaitable[None]]:
    """What ends that process and waits for its end."""

    async def end() -> None:
        os.kill(pid, signal.SIGTERM)
        while _runs(pid):  # noqa: ASYNC110 - another's child process has no event
            await asyncio.sleep(LOOK_SECONDS)

    return end


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[-1].split()[0] != "Z"
    except OSError:
        return False
