"""What a check is: a claim about a plugin, the clause of docs/protocol.md that makes it, and its test."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from berth.conformance.errors import UnmetError
from berth.conformance.subject import PluginUnderTest

Run = Callable[[PluginUnderTest], Awaitable[None]]


class Check(msgspec.Struct, frozen=True):
    """One check.

    `needs` are capabilities without which it is skipped; `after` are checks that it builds upon, and it is
    skipped where one of them failed.
    """

    id: str
    title: str
    clause: str
    needs: tuple[str, ...]
    after: tuple[str, ...]
    run: Run


CHECKS: dict[str, Check] = {}
"""All checks by id, in the order in which they run."""

BASICS: list[str] = []
"""Checks that all later ones build upon."""


def check(
    identifier: str,
    title: str,
    clause: str,
    *,
    needs: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
    basic: bool = False,
) -> Callable[[Run], Run]:
    """Enter the function into the list of checks; all but handshakes build upon the basic ones before it."""

    def enter(run: Run) -> Run:
        before = () if identifier.startswith("handshake/") else tuple(BASICS)
        CHECKS[identifier] = Check(
            identifier, title, clause, needs, tuple(dict.fromkeys(before + after)), run
        )
        if basic:
            BASICS.append(identifier)
        return run

    return enter


def expect(met: object, expected: str, came: Any) -> None:
    """Raises: UnmetError unless what was expected came."""
    if not met:
        raise UnmetError(expected, came)
