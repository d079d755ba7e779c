"""Shards: which profiles are led apart from the others, each shard by a lease of its own.

They stand in a document of their own behind the KubeSchedulerConfiguration in its file:

    apiVersion: berth.dev/v1alpha1
    kind: ShardList
    shards:
    - name: gpu
      profiles: [gpu]
    - name: rest
      profiles: [default-scheduler, batch]

Two leaders must never race for a node. So profiles of different shards need node sets that are proven to be
disjoint by what their NodeAffinity adds to every pod (docs/decisions/0024-shards.md).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec

from berth.config.catalogue import ExtensionPoint
from berth.config.errors import DecodeError, ShardListError
from berth.config.go_text import quote
from berth.config.loading import LoadedConfig
from berth.config.plugin_args import NodeAffinityArgs, NodeSelectorRequirement, NodeSelectorTerm
from berth.config.profiles import ResolvedProfile
from berth.config.reading.own_documents import SHARD_LIST, own_document
from berth.config.reading.tree import Object, to_plain

_NODE_AFFINITY = "NodeAffinity"
_NAME = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_REMEDY = (
    "put them into one shard, or let NodeAffinityArgs.addedAffinity of each require a label with values that "
    "the other does not have"
)


class Shard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Profiles, by schedulerName, that one replica leads together; "" names the only shard there is."""

    name: str
    profiles: tuple[str, ...]


class _ShardList(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    shards: tuple[Shard, ...]


def shards_beside(source: bytes | str, file: str) -> tuple[Shard, ...]:
    """Give the shards that a ShardList behind a configuration in the same file describes; none without one.

    Raises: ShardListError.
    """
    try:
        document = own_document(source, SHARD_LIST)
    except DecodeError as error:
        raise ShardListError(f"{file}: {error}") from None
    return () if document is None else _read(document, file)


def _read(value: Object, file: str) -> tuple[Shard, ...]:
    try:
        listed = msgspec.convert(to_plain(value), _ShardList)
    except msgspec.ValidationError as error:
        raise ShardListError(f"{file}: {SHARD_LIST}: {error}") from None
    if not listed.shards:
        raise ShardListError(f"{file}: {SHARD_LIST}: shards: must be a list with an entry for each shard")
    return listed.shards


def check_shards(shards: Sequence[Shard], loaded: LoadedConfig, file: str) -> None:
    """Check that each profile is led by one shard, and that no two shards may place pods on one node.

    Raises: ShardListError with every problem found.
    """
    if problems := [f"{file}: {SHARD_LIST}: {problem}" for problem in _problems(shards, loaded)]:
        raise ShardListError(*problems)


def _problems(shards: Sequence[Shard], loaded: LoadedConfig) -> Iterator[str]:
    if not shards:
        return
    if not loaded.configuration.leader_election.leader_elect:
        yield "each shard is led by a lease: set leaderElection.leaderElect to true"
    yield from _name_problems(shards)
    yield from _division_problems(shards, [profile.scheduler_name for profile in loaded.profiles])
    profiles = {profile.scheduler_name: profile for profile in loaded.profiles}
    for one, other in combinations(shards, 2):
        for first in filter(profiles.get, one.profiles):
            for second in filter(profiles.get, other.profiles):
                if first != second and not disjoint(profiles[first], profiles[second]):
                    pair = f"profiles {quote(first)} (shard {one.name}) and {quote(second)}"
                    yield f"{pair} (shard {other.name}) may share nodes: {_REMEDY}"


def _name_problems(shards: Sequence[Shard]) -> Iterator[str]:
    for index, shard in enumerate(shards):
        path = f"shards[{index}].name"
        if not _NAME.fullmatch(shard.name):
            rule = "lower case letters, digits and '-', at most 63"
            yield f"{path}: {quote(shard.name)} is no DNS label: {rule}"
        if any(shard.name == other.name for other in shards[:index]):
            yield f"{path}: {quote(shard.name)} is listed already; names must differ"


def _division_problems(shards: Sequence[Shard], profiles: Sequence[str]) -> Iterator[str]:
    led: dict[str, str] = {}
    for index, shard in enumerate(shards):
        path = f"shards[{index}].profiles"
        if not shard.profiles:
            yield f"{path}: give at least one profile by its schedulerName"
        for name in shard.profiles:
            if name not in profiles:
                yield f"{path}: there is no profile {quote(name)}; these are: {', '.join(profiles)}"
            elif name in led:
                yield f"{path}: profile {quote(name)} is in shard {led[name]} already; keep one"
            led.setdefault(name, shard.name)
    for name in profiles:
        if name not in led:
            yield f"shards: profile {quote(name)} is in none; add it to the shard that is to lead it"


def disjoint(one: ResolvedProfile, other: ResolvedProfile) -> bool:
    """Whether no node, whatever its labels are, passes the added affinities of both profiles."""
    first, second = _required_terms(one), _required_terms(other)
    if first is None or second is None:
        return False
    return all(_exclude(term, opposite) for term in first for opposite in second)


def _required_terms(profile: ResolvedProfile) -> tuple[NodeSelectorTerm, ...] | None:
    """The terms of which a node has to meet one; None where every node may do."""
    args = profile.args.get(_NODE_AFFINITY)
    filters = _NODE_AFFINITY in profile.plugins(ExtensionPoint.FILTER)
    if not filters or not isinstance(args, NodeAffinityArgs) or args.added_affinity is None:
        return None
    required = args.added_affinity.required_during_scheduling_ignored_during_execution
    return None if required is None else required.node_selector_terms


def _exclude(one: NodeSelectorTerm, other: NodeSelectorTerm) -> bool:
    return any(
        _contradict(first, second) or _contradict(second, first)
        for first in one.match_expressions
        for second in other.match_expressions
        if first.key == second.key
    )


def _contradict(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    """Whether no value of the label is in the one's and meets the other."""
    if one.operator != "In":
        return False
    if other.operator == "NotIn":
        return set(one.values or ()) <= set(other.values or ())
    if other.operator == "In":
        return not set(one.values or ()) & set(other.values or ())
    return other.operator == "DoesNotExist"
