"""A plugin's arguments by profile: the desired ones, and those that it accepted last.

A plugin that refuses new arguments keeps the previous ones, also after it reconnects: pods depend on
it, and its condition ArgumentsAccepted shows the refusal.

Called by: connection.py, which configures a plugin with them; attaching.py, which changes them.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from berth.config.out_of_tree.sidecars import SidecarSpec

Configure = Callable[[str, Any], Awaitable[list[str]]]
"""Hands arguments of a profile over; what the plugin finds wrong with them."""


class ProfileArguments(Mapping[str, Any]):
    """The arguments in force, by profile: the desired ones, or if refused those accepted last."""

    def __init__(self, wanted: Mapping[str, Any], spec: SidecarSpec) -> None:
        self._wanted = dict(wanted)
        self._taken: dict[str, Any] = {}
        if spec.accepted is not None:
            # The arguments of an entry: a profile's own arguments have none to fall back to.
            entry = (profile for profile, args in wanted.items() if args == spec.args)
            self._taken = dict.fromkeys(entry, spec.accepted.args)
        self.refusals: dict[str, list[str]] = {}
        """What the plugin found wrong with wanted arguments that are not in force, by profile."""

    def __getitem__(self, profile: str) -> Any:
        return self._taken[profile] if profile in self.refusals else self._wanted[profile]

    def __iter__(self) -> Iterator[str]:
        return iter(self._wanted)

    def __len__(self) -> int:
        return len(self._wanted)

    def wanted(self) -> dict[str, Any]:
        """The desired arguments, by profile."""
        return dict(self._wanted)

    def want(self, arguments: Mapping[str, Any]) -> None:
        """Set the desired arguments, for the next handshake."""
        self._wanted = dict(arguments)
        self.refusals.clear()

    def refused(self, wanted: Mapping[str, Any], errors: Sequence[str]) -> None:
        """Record that the plugin refused arguments of profiles that it serves, and keeps those in force.

        They are offered again at the next handshake: another version may accept them.
        """
        others = {
            profile: arguments
            for profile, arguments in wanted.items()
            if profile in self._wanted and self[profile] != arguments
        }
        for profile, arguments in others.items():
            self._taken[profile] = self[profile]
            self._wanted[profile] = arguments
            self.refusals[profile] = list(errors)

    def taken(self, profile: str, arguments: Any) -> None:
        """Record that the plugin accepted these arguments of a profile."""
        if profile not in self.refusals or arguments != self._taken[profile]:
            self._wanted[profile] = arguments
            self.refusals.pop(profile, None)
        self._taken[profile] = arguments

    def settle(self) -> None:
        """Make the arguments in force the desired ones, and drop those that were refused."""
        self.want(dict(self))

    def drop(self, profile: str) -> None:
        """Drop a profile that no longer uses the plugin."""
        for known in (self._wanted, self._taken, self.refusals):
            known.pop(profile, None)

    async def hand_over(self, configure: Configure) -> list[str]:
        """Configure each profile with the desired arguments, or else with those accepted last.

        The result names the problems where neither is accepted; the plugin can't be used then.
        """
        problems: list[str] = []
        for profile, arguments in tuple(self._wanted.items()):
            errors = await configure(profile, arguments)
            self.refusals.pop(profile, None)
            if not errors:
                self._taken[profile] = arguments
            elif await self._falls_back(profile, configure):
                self.refusals[profile] = errors
            else:
                problems += [error for error in errors if error not in problems]
        return problems

    async def _falls_back(self, profile: str, configure: Configure) -> bool:
        if profile not in self._taken or self._taken[profile] == self._wanted[profile]:
            return False
        return not await configure(profile, self._taken[profile])
