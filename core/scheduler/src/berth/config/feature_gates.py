"""Feature gates: which optional behaviour is on, by default or by --feature-gates.

Source: k8s.io/component-base featuregate and compatibility (v0.36).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from berth.config.errors import FeatureGateError
from berth.config.go_text import BOOLEANS, quote
from berth.config.releases.gate_history import FOLDED, HISTORY, NEEDS
from berth.config.releases.release import (
    DEFAULT,
    EffectiveVersion,
    Release,
    effective,
    oldest_emulated,
    shown,
)
from berth.config.releases.rules import RULES, Rules

_STAGE_GATES = {"AllAlpha": "Alpha", "AllBeta": "Beta"}
_COMPONENT = "kube"
_REMOVED = "removed"
DEFAULT_VERSION = effective()


class GateSpec(msgspec.Struct, frozen=True):
    """What a gate is in one release: its stage and default, and whether that can be changed."""

    stage: str
    default: bool
    locked: bool = False


_ABSENT = GateSpec("PreAlpha", default=False)


class FeatureGates(msgspec.Struct, frozen=True):
    """The gates of one process: what was set, over the defaults of the release that it follows."""

    chosen: Mapping[str, bool] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    version: EffectiveVersion = DEFAULT_VERSION

    @property
    def rules(self) -> Rules:
        """What the followed release decides otherwise than others, whatever its gates."""
        return RULES[self.version.binary]

    def enabled(self, name: str) -> bool:
        """Answer whether a gate is on; for one that the release removed, whether its behaviour is.

        Raises:
            KeyError: no release had such a gate.
        """
        if name in self.chosen:
            return self.chosen[name]
        if is_removed(name, self.version.binary):
            return name not in FOLDED or self.enabled(FOLDED[name])
        return gate_spec(name, self.version).default


@cache
def gate_spec(name: str, version: EffectiveVersion = DEFAULT_VERSION) -> GateSpec:
    """Give what a gate is at these versions.

    Raises:
        KeyError: there is no such gate.
    """
    spec = _ABSENT
    for since, min_compatibility, (stage, *default) in _steps(name):
        if since <= version.emulated and min_compatibility <= version.min_compatibility and default:
            spec = GateSpec(stage, default[0] == "on", "locked" in default)
    return spec


@cache
def is_known(name: str, binary: Release) -> bool:
    """Answer whether a program of a release has a gate of this name."""
    return name in HISTORY and next(_steps(name))[0] <= binary and not is_removed(name, binary)


@cache
def is_removed(name: str, binary: Release) -> bool:
    """Answer whether a program of a release has this gate no more.

    Raises:
        KeyError: there is no such gate.
    """
    return any(since <= binary for since, _, (stage, *_) in _steps(name) if stage == _REMOVED)


def _steps(name: str) -> Iterator[tuple[Release, Release, list[str]]]:
    """Each step of a gate's history: the release, the least minimum compatibility version, what it became."""
    for step in HISTORY[name].split("; "):
        versions, *became = step.split()
        since, _, least = versions.partition("/")
        yield _release(since), _release(least or "0.0"), became


def _release(text: str) -> Release:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def parse_feature_gates(values: Iterable[str], version: EffectiveVersion = DEFAULT_VERSION) -> FeatureGates:
    """Give the gates that the values of --feature-gates stand for, as in A=true,kube:B=false.

    Raises:
        FeatureGateError: a gate is unknown or locked, a value malformed, or a need unmet.
    """
    wanted = _wanted(",".join(values))
    unknown = next((name for name in wanted if not is_known(name, version.binary)), None)
    if unknown is not None:
        raise FeatureGateError(f"unrecognized feature gate: {unknown}")
    _check_changeable(wanted, version)
    gates = FeatureGates(MappingProxyType(_with_stages(wanted, version)), version)
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


def _check_changeable(wanted: Mapping[str, bool], version: EffectiveVersion) -> None:
    problems: list[str] = []
    at = f"emulated version {shown(version.emulated)}"
    beside = f"min compatibility version {shown(version.min_compatibility)}"
    for name, value in wanted.items():
        spec = gate_spec(name, version)
        setting = f"cannot set feature gate {name} to {_word(value)}, feature is"
        if spec.locked and spec.default != value:
            problems.append(f"{setting} locked to {_word(spec.default)}")
        elif spec is _ABSENT:
            problems.append(f"{setting} PreAlpha at {at}, {beside}")
    if problems:
        raise FeatureGateError(*problems)


def _word(value: bool) -> str:
    return "true" if value else "false"


def _with_stages(wanted: Mapping[str, bool], version: EffectiveVersion) -> dict[str, bool]:
    """Spread AllAlpha and AllBeta over the gates that were not set one by one."""
    chosen: dict[str, bool] = {}
    known = [name for name in HISTORY if is_known(name, version.binary) and name not in _STAGE_GATES]
    for gate, stage in _STAGE_GATES.items():
        if gate in wanted:
            chosen |= {name: wanted[gate] for name in known if gate_spec(name, version).stage == stage}
    return chosen | dict(wanted)


def _check_needs(gates: FeatureGates) -> None:
    problems: list[str] = []
    binary = gates.version.binary
    for name, needs in NEEDS.items():
        off = [need for need in needs if is_known(need, binary) and not gates.enabled(need)]
        if off and is_known(name, binary) and gates.enabled(name):
            problems.append(
                f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
            )
    if problems:
        raise FeatureGateError(*problems)


def parse_versions(
    binary: Release = DEFAULT, emulated: Iterable[str] = (), min_compatibility: Iterable[str] = ()
) -> EffectiveVersion:
    """Give the versions that --emulated-version and --min-compatibility-version ask for, as in kube=1.35.

    Raises:
        FeatureGateError: one is malformed, or out of the range that `binary` allows.
    """
    oldest, least_wanted = oldest_emulated(binary), _last(min_compatibility)
    version = effective(binary, _last(emulated), least_wanted)
    if not oldest <= version.emulated <= binary:
        bounds = f"[{shown(oldest)}, {shown(binary)}.0]"
        raise FeatureGateError(f"emulation version {shown(version.emulated)} is not between {bounds}")
    if least_wanted is not None and not oldest <= least_wanted <= version.emulated:
        bounds = f"[{shown(oldest)}, {shown(version.emulated)}]"
        raise FeatureGateError(
            f"minCompatibilityVersion version {shown(least_wanted)} is not between {bounds}"
        )
    return version


def _last(values: Iterable[str]) -> Release | None:
    """The release of the last value; all are read."""
    release = None
    for value in values:
        component, equals, text = value.partition("=")
        if equals and component.strip() != _COMPONENT:
            raise FeatureGateError(f"component not registered: {component.strip()}")
        release = _parsed_release((text if equals else value).strip())
    return release


def _parsed_release(text: str) -> Release:
    parts = text.removeprefix("v").split(".")
    if len(parts) not in {2, 3} or not all(part.isascii() and part.isdigit() for part in parts):
        raise FeatureGateError(f"could not parse {quote(text)} as version")
    if any(int(part) for part in parts[2:]):
        raise FeatureGateError(f"patch version not allowed, got: {_COMPONENT}={text}")
    return int(parts[0]), int(parts[1])
