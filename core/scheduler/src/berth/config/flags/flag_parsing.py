"""The syntax of command lines: --name=value, --name value, -v3, and switches without values.

Source: github.com/spf13/pflag v1.0.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from berth.config.errors import FlagError
from berth.config.flags.flag_table import Flag, FlagKind, by_name
from berth.config.flags.flag_values import parse_value
from berth.config.go_text import quote

_HELP = frozenset({"help", "h"})
# Kinds whose value must be attached with "=", and what stands for it where it is left out.
_BARE: Mapping[FlagKind, str] = {FlagKind.BOOL: "true", FlagKind.VERSION: "true"}


class ParsedFlags(msgspec.Struct):
    """What a command line says: values of the flags that were given, and whether help is asked for."""

    given: dict[str, Any] = msgspec.field(default_factory=dict)
    wants_help: bool = False
    arguments: list[str] = msgspec.field(default_factory=list)


def parse_arguments(arguments: Sequence[str], flags: Iterable[Flag]) -> ParsedFlags:
    """Read a command line; of repeated flags the last counts, lists grow.

    Raises:
        FlagError: with the first mistake.
    """
    reader = _Reader(list(arguments), by_name(flags))
    reader.run()
    return reader.parsed


class _Reader(msgspec.Struct):
    rest: list[str]
    flags: Mapping[str, Flag]
    parsed: ParsedFlags = msgspec.field(default_factory=ParsedFlags)

    def run(self) -> None:
        while self.rest and not self.parsed.wants_help:
            argument = self.rest.pop(0)
            if argument == "--":
                self.parsed.arguments += self.rest
                return
            if argument.startswith("--"):
                self._long(argument[2:])
            elif argument.startswith("-") and argument != "-":
                self._short(argument[1:])
            else:
                self.parsed.arguments.append(argument)

    def _long(self, text: str) -> None:
        written, equals, value = text.partition("=")
        if not written or written[0] in "-=":
            raise FlagError(f"bad flag syntax: --{text}")
        name = written.replace("_", "-")
        if name == "help":
            self.parsed.wants_help = True
            return
        flag = self.flags.get(name)
        if flag is None:
            raise FlagError(f"unknown flag: --{written}")
        self._set(flag, value if equals else self._value(flag, f"--{written}"))

    def _short(self, letters: str) -> None:
        if letters[0] in _HELP:
            self.parsed.wants_help = True
            return
        flag = next((flag for flag in self.flags.values() if flag.short == letters[0]), None)
        if flag is None:
            raise FlagError(f"unknown shorthand flag: '{letters[0]}' in -{letters}")
        attached = letters[1:].removeprefix("=")
        self._set(flag, attached or self._value(flag, f"'{flag.short}' in -{letters}"))

    def _value(self, flag: Flag, shown: str) -> str:
        if flag.kind in _BARE:
            return _BARE[flag.kind]
        if not self.rest:
            raise FlagError(f"flag needs an argument: {shown}")
        return self.rest.pop(0)

    def _set(self, flag: Flag, text: str) -> None:
        try:
            value = parse_value(flag, text)
        except ValueError as error:
            name = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
            raise FlagError(f"invalid argument {quote(text)} for {quote(name)} flag: {error}") from None
        if flag.kind is FlagKind.STRINGS:
            value = (*self.parsed.given.get(flag.name, ()), *value)
        self.parsed.given[flag.name] = value
