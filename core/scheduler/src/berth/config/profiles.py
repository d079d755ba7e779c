"""Stage 5, second half: each profile with its plugins in order, their weights and their arguments."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from berth.config.catalogue import Catalogue, ExtensionPoint
from berth.config.defaults import enabled_names
from berth.config.errors import BuildError, aggregate
from berth.config.go_text import quote
from berth.config.plugin_args import NodeResourcesFitArgs
from berth.config.plugin_sets import ResolvedPoints, resolve_points
from berth.config.rules.args_validation import fit_errors
from berth.config.rules.validation import same_args
from berth.config.types import Profile, SchedulerConfiguration

_PREFIX = "initializing profiles: "
_FIT = "NodeResourcesFit"


class ResolvedProfile(msgspec.Struct, frozen=True):
    """A profile that can be run.

    `points` holds (plugin, weight) by extension point in running order, weights 0 where nothing is scored;
    `args` the arguments of every plugin that is enabled somewhere and has any: structs of `plugin_args`
    for in-tree plugins, plain JSON for others. A percentage of 0 adapts to the size of the cluster.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int
    points: ResolvedPoints
    args: Mapping[str, Any]
    source: Profile

    def plugins(self, point: ExtensionPoint) -> tuple[str, ...]:
        """Give the names of the plugins that run at a point, in order."""
        return tuple(name for name, _weight in self.points[point])


def resolve_profiles(
    configuration: SchedulerConfiguration, catalogue: Catalogue
) -> tuple[ResolvedProfile, ...]:
    """Give every profile in file order.

    Raises:
        BuildError: the first profile that can't be built, and why.
    """
    resolved: list[ResolvedProfile] = []
    for profile in configuration.profiles:
        resolved.append(_resolved(profile, configuration.percentage_of_nodes_to_score, catalogue))
        _check_same_sort(resolved)
    return tuple(resolved)


def _resolved(profile: Profile, percentage: int, catalogue: Catalogue) -> ResolvedProfile:
    enabled = enabled_names(profile.plugins) & catalogue.keys()
    entries = tuple(
        entry for entry in profile.plugin_config if entry.name in enabled and entry.args is not None
    )
    args = {entry.name: entry.args for entry in sorted(entries, key=lambda entry: entry.name)}
    try:
        _check_fit(args.get(_FIT))
        points = resolve_points(profile.scheduler_name, profile.plugins, catalogue)
    except BuildError as error:
        raise BuildError(
            f"{_PREFIX}creating profile for scheduler name {profile.scheduler_name}: {error}"
        ) from None
    own = profile.percentage_of_nodes_to_score
    return ResolvedProfile(
        profile.scheduler_name,
        percentage if own is None else own,
        points,
        args,
        msgspec.structs.replace(profile, plugin_config=entries),
    )


def _check_fit(args: Any) -> None:
    problems = fit_errors(args) if isinstance(args, NodeResourcesFitArgs) else []
    if problems:
        raise BuildError(f"initializing plugin {quote(_FIT)}: {aggregate(problems)}")


def _check_same_sort(resolved: Sequence[ResolvedProfile]) -> None:
    """All profiles feed one queue, so the newest one must sort it as the first one does."""
    first, newest = resolved[0], resolved[-1]
    (one,), (other,) = (profile.plugins(ExtensionPoint.QUEUE_SORT) for profile in (first, newest))
    profile = f"profile {quote(newest.scheduler_name)}"
    if one != other:
        raise BuildError(
            f"{_PREFIX}different queue sort plugins for {profile}: {quote(other)}, first: {quote(one)}"
        )
    if not same_args(first.args.get(one), newest.args.get(other)):
        raise BuildError(f"{_PREFIX}different queue sort plugin args for {profile}")
