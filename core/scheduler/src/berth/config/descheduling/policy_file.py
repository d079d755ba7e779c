"""Reading a policy's file: as strict as a configuration; what is not followed is refused by its field.

Source: pkg/framework/plugins/*/validation.go (descheduler v0.36).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from berth.config.descheduling.metrics import PrometheusServer
from berth.config.descheduling.metrics_rules import (
    PROMETHEUS,
    Problem,
    known_sources,
    provider_problems,
    unknown_source,
    utilization_problems,
)
from berth.config.descheduling.policy import (
    BALANCE,
    DEFAULT_EVICTOR,
    DESCHEDULE,
    Args,
    ConsolidationArgs,
    DefaultEvictorArgs,
    FailedPodsArgs,
    HighNodeUtilizationArgs,
    LowNodeUtilizationArgs,
    NodeAffinityArgs,
    NodeTaintsArgs,
    PluginSet,
    PodLifeTimeArgs,
    Policy,
    PolicySelector,
    Profile,
    TooManyRestartsArgs,
    TopologySpreadArgs,
    WrittenPolicy,
    WrittenProfile,
)
from berth.config.descheduling.policy_head import head_problem
from berth.config.descheduling.policy_part import PolicyPart
from berth.config.duration import parse_duration
from berth.config.errors import DecodeError, PolicyError
from berth.config.reading.document import read_document
from berth.config.reading.tree import to_plain
from berth.objects.label_selector import InvalidSelectorError, LabelSelector, Selector, compile_selector
from berth.objects.selector_text import SelectorError, parse_label_selector

MAX_BYTES: Final = 1 << 20
MAX_PROFILES: Final = 100
MAX_CHARACTERS: Final = 400
"""Of a message."""

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
USUAL_PROTECTIONS: Final = ("PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods")
FURTHER_PROTECTIONS: Final = ("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")
EVICTION_MODES: Final = ("OnlyThresholdingResources",)
RESTART_STATES: Final = ("Running", "CrashLoopBackOff")
LIFETIME_STATES: Final = (
    *("Running", "Pending", "Succeeded", "Failed", "Unknown"),
    *("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"),
    *("PodInitializing", "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff", "ErrImagePull"),
    *("CreateContainerConfigError", "CreateContainerError", "InvalidImageName"),
    *("OOMKilled", "Error", "Completed", "DeadlineExceeded", "Evicted", "ContainerCannotRun", "StartError"),
)

T = TypeVar("T")


def read_policy(source: bytes, file: str) -> Policy:
    """The policy of a file; `file` is its name in messages. Raises: PolicyError."""
    return _Reading(file).policy(source)


def compiled(selector: PolicySelector) -> Selector:
    """The selector, ready to match. Raises: InvalidSelectorError."""
    return compile_selector(msgspec.convert(msgspec.to_builtins(selector), LabelSelector))


class _Reading:
    """One reading of one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._sources: Mapping[str, PrometheusServer | None] = {}

    def policy(self, source: bytes) -> Policy:
        plain = self._plain(source)
        problem = head_problem(plain)
        if problem is not None:
            raise self._wrong(*problem)
        written = self._typed(plain, WrittenPolicy, "")
        self._check(written)
        self._sources = known_sources(written)
        return Policy(
            tuple(self._profile(each, f"profiles[{i}]") for i, each in enumerate(written.profiles)),
            node_selector=written.node_selector,
            max_per_node=written.max_no_of_pods_to_evict_per_node,
            max_per_namespace=written.max_no_of_pods_to_evict_per_namespace,
            most=written.max_no_of_pods_to_evict_total,
            grace_period_seconds=written.grace_period_seconds,
            prometheus=self._sources.get(PROMETHEUS),
        )

    def _plain(self, source: bytes) -> Any:
        if len(source) > MAX_BYTES:
            raise self._wrong("", f"more than {MAX_BYTES} bytes; write a policy of fewer profiles")
        try:
            document = read_document(source)
        except DecodeError as error:
            raise self._wrong("", f"{error}; write YAML or JSON") from None
        if document.duplicates:
            raise self._wrong("", f"{document.duplicates[0]}; write the field once")
        return to_plain(document.value)

    def _check(self, policy: WrittenPolicy) -> None:
        if not 0 < len(policy.profiles) <= MAX_PROFILES:
            raise self._wrong("profiles", f"found {len(policy.profiles)}; write 1 to {MAX_PROFILES}")
        try:
            parse_label_selector(policy.node_selector)
        except SelectorError as error:
            raise self._wrong("nodeSelector", f"{error}; write it as `kubectl get -l` takes it") from None
        for problem in provider_problems(policy):
            raise self._wrong(*problem)
        if policy.eviction_failure_event_notification:
            remedy = "evictions that fail are printed; take the field out"
            raise self._wrong("evictionFailureEventNotification", remedy)

    def _profile(self, profile: WrittenProfile, where: str) -> Profile:
        given: dict[str, Args] = {}
        known: Mapping[str, type[Args]] = {DEFAULT_EVICTOR: DefaultEvictorArgs, **DESCHEDULE, **BALANCE}
        for i, each in enumerate(profile.plugin_config):
            place = f"{where}.pluginConfig[{i}]"
            if each.name not in known:
                raise self._wrong(f"{place}.name", f"found {each.name[:60]!r}; there are {_listed(known)}")
            if each.name in given:
                raise self._wrong(f"{place}.name", f"{each.name} is there twice; write its arguments once")
            args = {} if each.args is None else each.args
            given[each.name] = self._args(args, known[each.name], f"{place}.args")
        enabled = [
            *self._enabled(profile.plugins.deschedule, DESCHEDULE, f"{where}.plugins.deschedule"),
            *self._enabled(profile.plugins.balance, BALANCE, f"{where}.plugins.balance"),
        ]
        for point in ("presort", "pre_sort", "sort", "filter", "preevictionfilter", "pre_eviction_filter"):
            chosen = getattr(profile.plugins, point)
            self._enabled(chosen, {DEFAULT_EVICTOR: Args}, f"{where}.plugins.{_camel(point)}")
        strategies = []
        for name in dict.fromkeys(enabled):
            if name not in given:
                # Defaults may lack what the strategy needs.
                given[name] = self._args({}, known[name], f"{where}.pluginConfig[{name}].args")
            self._check_source(given[name], f"{where}.pluginConfig[{name}].args")
            strategies.append((name, given[name]))
        evictor = given.get(DEFAULT_EVICTOR, DefaultEvictorArgs())
        assert isinstance(evictor, DefaultEvictorArgs)
        return Profile(profile.name, evictor, tuple(strategies))

    def _check_source(self, args: Args, where: str) -> None:
        if isinstance(args, LowNodeUtilizationArgs) and args.metrics_utilization is not None:
            unknown = unknown_source(args.metrics_utilization, self._sources)
            if unknown:
                raise self._wrong(f"{where}.metricsUtilization.source", unknown)

    def _enabled(self, chosen: PluginSet, known: Mapping[str, object], where: str) -> tuple[str, ...]:
        if chosen.disabled:
            raise self._wrong(f"{where}.disabled", "no plugin runs unless it is enabled; take the list out")
        for i, name in enumerate(chosen.enabled):
            if name not in known:
                raise self._wrong(f"{where}.enabled[{i}]", f"found {name[:60]!r}; there are {_listed(known)}")
        return chosen.enabled

    def _args(self, written: Any, kind: type[T], where: str) -> T:
        args = self._typed(written, kind, where)
        for problem in _problems(args):
            raise self._wrong(f"{where}.{problem[0]}", problem[1])
        return args

    def _typed(self, plain: Any, kind: type[T], where: str) -> T:
        try:
            return msgspec.convert(plain, kind)
        except msgspec.ValidationError as error:
            what, _, inside = str(error).partition(" - at `$")
            field = f"{where}{inside.strip('`')}".lstrip(".")
            remedy = _spelling(what) or "correct the field"
            raise self._wrong(field, f"{what[:1].lower()}{what[1:]}; {remedy}") from None

    def _wrong(self, field: str, what: str) -> PolicyError:
        # What is found may be as long as the file; the remedy stands at the end.
        if len(what) > MAX_CHARACTERS:
            what = f"{what[: MAX_CHARACTERS // 2]}...{what[-MAX_CHARACTERS // 2 :]}"
        return PolicyError(f"{self._file}: {field}: {what}" if field else f"{self._file}: {what}")


def _spelling(what: str) -> str:
    """What to write instead of an unknown field that is one in other letters; empty where it is none."""
    unknown = what.partition("unknown field `")[2].rstrip("`")
    known = [name for name in _fields() if unknown and name.casefold() == unknown.casefold()]
    return f"write {known[0]}" if known else ""


@cache
def _fields() -> frozenset[str]:
    """The names of all fields that a policy has anywhere."""
    parts = [PolicyPart]
    for part in parts:
        parts += part.__subclasses__()
    return frozenset(name for part in parts for name in part.__struct_encode_fields__)


def _problems(args: object) -> Iterator[Problem]:
    """What is wrong with arguments that are of the right types: the field, what was found, and a remedy."""
    for field in ("namespaces", "owner_kinds"):
        chosen = getattr(args, field, None)
        if chosen is not None and chosen.include and chosen.exclude:
            yield _camel(field), "found include and exclude; write one of them"
    for field in ("label_selector", "namespace_label_selector"):
        selector = getattr(args, field, None)
        try:
            if selector is not None:
                compiled(selector)
        except InvalidSelectorError as error:
            yield _camel(field), f"{error}; correct the selector"
    check = _CHECKS.get(type(args))
    if check is not None:
        yield from check(args)


def _among(field: str, found: Any, known: tuple[str, ...]) -> Iterator[Problem]:
    unknown = sorted(set(found) - set(known))
    if unknown:
        yield field, f"found {unknown[0][:60]!r}; there are {', '.join(known)}"


def _node_affinity(args: NodeAffinityArgs) -> Iterator[Problem]:
    if not args.node_affinity_type:
        yield "nodeAffinityType", f"found nothing; write {REQUIRED}, {PREFERRED} or both"
    yield from _among("nodeAffinityType", args.node_affinity_type, (REQUIRED, PREFERRED))


def _node_taints(args: NodeTaintsArgs) -> Iterator[Problem]:
    if args.excluded_taints and args.included_taints:
        yield "excludedTaints", "found beside includedTaints; write one of them"


def _topology_spread(args: TopologySpreadArgs) -> Iterator[Problem]:
    yield from _among("constraints", args.constraints, (HARD, SOFT))
    if not args.topology_balance_node_fit:
        yield "topologyBalanceNodeFit", "no pod moves without a node to go to; take the field out"


def _restarts(args: TooManyRestartsArgs) -> Iterator[Problem]:
    if args.pod_restart_threshold < 1:
        yield "podRestartThreshold", f"found {args.pod_restart_threshold}; write at least 1"
    yield from _among("states", args.states, RESTART_STATES)


def _lifetime(args: PodLifeTimeArgs) -> Iterator[Problem]:
    yield from _among("states", args.states, LIFETIME_STATES)
    nothing = msgspec.structs.asdict(type(args.conditions[0])()) if args.conditions else {}
    for i, each in enumerate(args.conditions):
        if msgspec.structs.asdict(each) == nothing:
            yield f"conditions[{i}]", "found nothing in it; write a type, status, reason or time"
    if args.max_pod_life_time_seconds is None and not (args.states or args.conditions or args.exit_codes):
        yield "maxPodLifeTimeSeconds", "found no criterion; write it, or states, conditions or exitCodes"


def _failed(args: FailedPodsArgs) -> Iterator[Problem]:
    if "" in args.reasons:
        yield "reasons", "found an empty one; name reasons of containers or pods"


def _thresholds(field: str, found: Mapping[str, float]) -> Iterator[Problem]:
    if not found:
        yield field, "found none; write percentages by resource, such as {cpu: 20}"


def _low(args: LowNodeUtilizationArgs) -> Iterator[Problem]:
    yield from _thresholds("thresholds", args.thresholds)
    yield from _thresholds("targetThresholds", args.target_thresholds)
    if args.thresholds.keys() != args.target_thresholds.keys():
        yield "targetThresholds", "found other resources than in thresholds; write the same in both"
    for name, percent in args.thresholds.items():
        if not args.use_deviation_thresholds and percent > args.target_thresholds.get(name, percent):
            yield (
                f"thresholds[{name}]",
                f"found {percent:g}, above the target; write less than targetThresholds",
            )
    yield from utilization_problems(args)
    yield from _exclusion(args.evictable_namespaces.include)


def _high(args: HighNodeUtilizationArgs) -> Iterator[Problem]:
    yield from _thresholds("thresholds", args.thresholds)
    yield from _among("evictionModes", args.eviction_modes, EVICTION_MODES)
    yield from _exclusion(args.evictable_namespaces.include)


def _consolidation(args: ConsolidationArgs) -> Iterator[Problem]:
    yield from _exclusion(args.evictable_namespaces.include)


def _exclusion(included: frozenset[str]) -> Iterator[Problem]:
    if included:
        yield "evictableNamespaces.include", "found namespaces; write those to be left alone into exclude"


def _evictor(args: DefaultEvictorArgs) -> Iterator[Problem]:
    threshold, protections = args.priority_threshold, args.pod_protections
    if args.node_selector:
        yield "nodeSelector", "every node is tried that the scheduler may choose; take the field out"
    if threshold is not None and threshold.value is not None and threshold.name:
        yield "priorityThreshold", "found value and name; write one of them"
    if args.no_eviction_policy not in ("", "Preferred", "Mandatory"):
        yield "noEvictionPolicy", f"found {args.no_eviction_policy[:60]!r}; write Preferred or Mandatory"
    try:
        age = parse_duration(args.min_pod_age) if args.min_pod_age else 0
    except ValueError as error:
        yield "minPodAge", f"{error}; write a duration such as 1h30m"
        return
    if age < 0:
        yield "minPodAge", f"found {args.min_pod_age}; write a duration such as 1h30m"
    yield from _among("podProtections.defaultDisabled", protections.default_disabled, USUAL_PROTECTIONS)
    yield from _among("podProtections.extraEnabled", protections.extra_enabled, FURTHER_PROTECTIONS)
    older = (
        *("evict_local_storage_pods", "evict_daemon_set_pods", "evict_system_critical_pods"),
        *("ignore_pvc_pods", "ignore_pods_without_pdb", "evict_failed_bare_pods"),
    )
    both = protections.default_disabled or protections.extra_enabled
    for field in older:
        if both and getattr(args, field):
            yield "podProtections", f"found beside {_camel(field)}; write that as a protection, too"
    if args.evict_daemon_set_pods or "DaemonSetPods" in protections.default_disabled:
        where = "evictDaemonSetPods" if args.evict_daemon_set_pods else "podProtections.defaultDisabled"
        yield where, "a DaemonSet's pod has no other node to go to; leave these pods protected"


_CHECKS: Final[Mapping[type, Callable[[Any], Iterator[Problem]]]] = {
    NodeAffinityArgs: _node_affinity,
    NodeTaintsArgs: _node_taints,
    TopologySpreadArgs: _topology_spread,
    TooManyRestartsArgs: _restarts,
    PodLifeTimeArgs: _lifetime,
    FailedPodsArgs: _failed,
    LowNodeUtilizationArgs: _low,
    HighNodeUtilizationArgs: _high,
    ConsolidationArgs: _consolidation,
    DefaultEvictorArgs: _evictor,
}


def _camel(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(word.capitalize() for word in others)


def _listed(known: Mapping[str, object]) -> str:
    return ", ".join(known)
