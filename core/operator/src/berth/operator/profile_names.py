"""Whether the profiles that a SchedulerPlugin names are there: one with a typo is waited for in vain."""

from collections.abc import Sequence

from berth.operator.kinds import Json


def unknown_profiles(plugin: Json, users: Sequence[Json]) -> list[str]:
    """Give the profiles of a SchedulerPlugin that none of the Schedulers that run it has."""
    known = {name for user in users for name in _profiles(user)}
    return [name for name in plugin["spec"].get("profiles") or () if name not in known]


def profile_problem(plugin: Json, scheduler: Json, users: Sequence[Json]) -> str:
    """Say what is wrong with the profiles in which a Scheduler is to run a plugin, if something is."""
    unknown = unknown_profiles(plugin, users)
    if unknown:
        names = ", ".join(unknown)
        return f"spec.profiles of the SchedulerPlugin names {names}, which no Scheduler that runs it has"
    if not _is_enabled(plugin, scheduler):
        names = ", ".join(_profiles(scheduler))
        return f"it is enabled in no profile ({names}); name one in spec.profiles of the SchedulerPlugin"
    return ""


def _profiles(scheduler: Json) -> list[str]:
    return [profile["schedulerName"] for profile in scheduler["spec"]["profiles"]]


def _is_enabled(plugin: Json, scheduler: Json) -> bool:
    wanted = plugin["spec"].get("profiles") or ()
    return any(
        profile["schedulerName"] in wanted or _names(profile, plugin["metadata"]["name"])
        for profile in scheduler["spec"]["profiles"]
    )


def _names(profile: Json, plugin: str) -> bool:
    sets = (profile.get("plugins") or {}).values()
    return any(one["name"] == plugin for point in sets for one in point.get("enabled") or ())
