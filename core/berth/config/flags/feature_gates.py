"""Feature gates: which optional behaviour is on, by default or by --feature-gates.

Source: k8s.io/component-base featuregate and compatibility (v0.36).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from berth.config.errors import FeatureGateError
from berth.config.flags.feature_gate_table import HISTORY, NEEDS
from berth.config.go_text import BOOLEANS, quote

Release: TypeAlias = tuple[int, int]

CURRENT: Release = (1, 36)
_OLDEST_EMULATED: Release = (1, 33)
_STAGE_GATES = {"AllAlpha": "Alpha", "AllBeta": "Beta"}
_COMPONENT = "kube"


@dataclass(frozen=True, slots=True)
class GateSpec:
    """What a gate is in one release: its stage and default, and whether that can be changed."""

    stage: str
    default: bool
    locked: bool = False


_ABSENT = GateSpec("PreAlpha", default=False)


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The gates of one process: what was set, over the defaults of a release."""

    chosen: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    release: Release = CURRENT

    def enabled(self, name: str) -> bool:
        """Answer whether a gate is on.

        Raises:
            KeyError: there is no such gate.
        """
        if name in self.chosen:
            return self.chosen[name]
        return gate_spec(name, self.release).default


@cache
def gate_spec(name: str, release: Release = CURRENT) -> GateSpec:
    """Give what a gate is in a release.

    Raises:
        KeyError: there is no such gate.
    """
    spec = _ABSENT
    for step in HISTORY[name].split("; "):
        since, stage, default, *lock = step.split()
        if _release(since) <= release:
            spec = GateSpec(stage, default == "on", bool(lock))
    return spec


def _release(text: str) -> Release:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def parse_feature_gates(values: Iterable[str], release: Release = CURRENT) -> FeatureGates:
    """Give the gates that the values of --feature-gates stand for, as in A=true,kube:B=false.

    Raises:
        FeatureGateError: a gate is unknown or locked, a value malformed, or a need unmet.
    """
    wanted = _wanted(",".join(values))
    unknown = next((name for name in wanted if name not in HISTORY), None)
    if unknown is not None:
        raise FeatureGateError(f"unrecognized feature gate: {unknown}")
    _check_changeable(wanted, release)
    gates = FeatureGates(MappingProxyType(_with_stages(wanted, release)), release)
    _check_needs(gates)
    return gates


def _wanted(text: str) -> dict[str, bool]:
    wanted: dict[str, bool] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        prefix, colon, rest = item.partition(":")
        if colon and prefix.strip() != _COMPONENT:
            raise FeatureGateError(f"component not registered: {prefix.strip()}")
        name, equals, value = (part.strip() for part in (rest if colon else item).partition("="))
        if not equals:
            raise FeatureGateError(f"missing bool value for {name}")
        if value not in BOOLEANS:
            reason = f"strconv.ParseBool: parsing {quote(value)}: invalid syntax"
            raise FeatureGateError(f"invalid value of {name}={value}, err: {reason}")
        wanted[name] = BOOLEANS[value]
    return wanted


def _check_changeable(wanted: Mapping[str, bool], release: Release) -> None:
    problems: list[str] = []
    for name, value in wanted.items():
        spec = gate_spec(name, release)
        setting = f"cannot set feature gate {name} to {_word(value)}, feature is"
        if spec.locked and spec.default != value:
            problems.append(f"{setting} locked to {_word(spec.default)}")
        elif spec is _ABSENT:
            problems.append(f"{setting} PreAlpha at emulated version {release[0]}.{release[1]}")
    if problems:
        raise FeatureGateError(*problems)


def _word(value: bool) -> str:
    return "true" if value else "false"


def _with_stages(wanted: Mapping[str, bool], release: Release) -> dict[str, bool]:
    """Spread AllAlpha and AllBeta over the gates that were not set one by one."""
    chosen: dict[str, bool] = {}
    for gate, stage in _STAGE_GATES.items():
        if gate in wanted:
            names = (name for name in HISTORY if gate_spec(name, release).stage == stage)
            chosen |= {name: wanted[gate] for name in names if name not in _STAGE_GATES}
    return chosen | dict(wanted)


def _check_needs(gates: FeatureGates) -> None:
    problems: list[str] = []
    for name, needs in NEEDS.items():
        off = [need for need in needs if not gates.enabled(need)]
        if off and gates.enabled(name):
            problems.append(
                f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
            )
    if problems:
        raise FeatureGateError(*problems)


def parse_emulated_version(values: Iterable[str]) -> Release:
    """Give the release whose defaults --emulated-version asks for, as in 1.35 or kube=1.35.

    Raises:
        FeatureGateError: it is malformed, or not one of the releases that can be emulated.
    """
    release = CURRENT
    for value in values:
        component, equals, text = value.partition("=")
        if equals and component.strip() != _COMPONENT:
            raise FeatureGateError(f"component not registered: {component.strip()}")
        release = _parsed_release((text if equals else value).strip())
    if not _OLDEST_EMULATED <= release <= CURRENT:
        shown, oldest = (".".join(map(str, version)) for version in (release, _OLDEST_EMULATED))
        newest = f"{CURRENT[0]}.{CURRENT[1]}.0"
        raise FeatureGateError(f"emulation version {shown} is not between [{oldest}, {newest}]")
    return release


def _parsed_release(text: str) -> Release:
    parts = text.removeprefix("v").split(".")
    if len(parts) not in {2, 3} or not all(part.isascii() and part.isdigit() for part in parts):
        raise FeatureGateError(f"could not parse {quote(text)} as version")
    if any(int(part) for part in parts[2:]):
        raise FeatureGateError(f"patch version not allowed, got: {_COMPONENT}={text}")
    return int(parts[0]), int(parts[1])
