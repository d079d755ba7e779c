"""What came of planning groups, remembered for as long as nothing changes that it rests on.

    planned --the same pods, the same cluster--> recalled
       |
       +--anything changes: a node, a pod, an object, a nomination, a sidecar--> forgotten

A change forgets the plans of all groups, those of groups that are gone among them.
Source: docs/decisions/0033-joint-placement.md.
"""

import hashlib
from collections.abc import Callable, Hashable, Sequence

import msgspec

from berth.evaluation.caching.remote_plugin import RemotePlugin
from berth.framework.group_plans import GroupPlan
from berth.framework.runtime import Framework, ProfilePlugins
from berth.pod_groups.members import Member
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.columns.growing import Rows
from berth.snapshot.pod_group_states import AnyKey, PodGroupState
from berth.snapshot.snapshot import Snapshot

MAX_GROUPS = 1024
"""The plans of so many groups are remembered; what was planned longest ago goes."""


class Planning(msgspec.Struct, frozen=True):
    """What is planned: pods of a group by UID and version, with which plugins, and how far its others are.

    `outside` is what answers from other processes rest on; None where that is not known.
    """

    plugins: ProfilePlugins
    outside: tuple[Hashable, ...] | None
    pods: tuple[tuple[str, str], ...]
    group: tuple[int, int, int]

    @classmethod
    def of(
        cls, framework: Framework, members: Sequence[Member], group: PodGroupState, nodes: Snapshot
    ) -> "Planning":
        """The planning of these members."""
        pods = tuple((member.pod.uid, member.pod.metadata.resource_version) for member in members)
        counts = len(group.pods), len(group.assumed), len(group.assigned)
        return cls(framework.plugins, _outside(framework, nodes), pods, counts)


class Planned(msgspec.Struct, frozen=True):
    """What came of planning: `plan` is None where one by one is as good.

    It does not last where a plugin failed on the way.
    """

    plan: GroupPlan | None
    lasts: bool


Place = tuple[AnyKey, bytes]
"""A group, and a digest of the rows that it is planned within."""


def place_of(key: AnyKey, within: Rows | None) -> Place:
    """What a group's planning within these rows (None: anywhere) is known by. Shapes: within intp (k,)."""
    return key, b"" if within is None else hashlib.blake2b(within.tobytes(), digest_size=16).digest()


class PlanMemory(msgspec.Struct):
    """The latest plan of each group.

    `reached` says how far everything has come that plans rest on, sidecars apart.
    """

    reached: Callable[[], Hashable]
    _at: Hashable = None
    _kept: BoundedCache[Place, tuple[Planning, Planned]] = msgspec.field(
        default_factory=lambda: BoundedCache(max_entries=MAX_GROUPS)
    )

    def __len__(self) -> int:
        """Of how many groups something is remembered."""
        return len(self._kept)

    def recall(self, place: Place, planning: Planning) -> Planned | None:
        """What came of that planning; None where it is not known, or no longer."""
        at = self.reached()
        if at != self._at:
            self._at = at
            self._kept.clear()
        known = self._kept.peek(place)
        return known[1] if known is not None and known[0] == planning else None

    def remember(self, place: Place, planning: Planning, planned: Planned) -> None:
        """Keep what came of it, unless something changed since `recall` did not know it."""
        if planning.outside is None or self.reached() != self._at:
            return
        self._kept.put(place, (planning, planned))

    def forget(self, place: Place) -> None:
        """Forget a plan that does not hold."""
        self._kept.drop(place)


def _outside(framework: Framework, nodes: Snapshot) -> tuple[Hashable, ...] | None:
    if framework.extenders:
        return None
    plugins = framework.plugins
    looks = (*plugins.pre_filter, *plugins.filter, *plugins.pre_score, *(each for each, _ in plugins.score))
    holds = (*plugins.reserve, *plugins.permit)
    outside = {plugin.name: plugin for plugin in (*looks, *holds) if not plugin.in_process}
    versions = tuple(
        plugin.shared_cache_key(nodes) if isinstance(plugin, RemotePlugin) else None
        for plugin in outside.values()
    )
    return None if None in versions else versions
