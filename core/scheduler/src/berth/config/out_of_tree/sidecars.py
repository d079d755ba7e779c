"""Out-of-tree plugins: where each sidecar listens, where it takes part, and what a failing call means.

`plugin_list` reads them from a file; the host of out-of-tree plugins dials them.
"""

import hashlib
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from berth.config.catalogue import IN_TREE, Catalogue, ExtensionPoint
from berth.config.duration import Duration
from berth.config.out_of_tree.pod_metadata import may_write
from berth.config.profiles import ResolvedProfile
from berth.config.rules.names import qualified_name_problems
from berth.objects.pods.pod import Pod

_P = ExtensionPoint
# Where the host calls sidecars; what preFilter and preScore prepare, a sidecar does in one.
SIDECAR_POINTS = frozenset(
    {
        _P.PRE_ENQUEUE,
        _P.QUEUE_SORT,
        _P.FILTER,
        _P.POST_FILTER,
        _P.SCORE,
        _P.RESERVE,
        _P.PERMIT,
        _P.PRE_BIND,
        _P.BIND,
        _P.POST_BIND,
        _P.PLACEMENT_GENERATE,
        _P.PLACEMENT_SCORE,
    }
)
ONE_IN_A_PROFILE = frozenset({_P.QUEUE_SORT, _P.PLACEMENT_GENERATE})
"""Where a profile has one plugin: a sidecar takes part there if both its entry and the profile say so."""
DEFAULT_POINTS = SIDECAR_POINTS - ONE_IN_A_PROFILE
POLICY_POINTS = SIDECAR_POINTS - {_P.QUEUE_SORT}
"""Where a failing call is a matter of policy; a pod without a sort key is queued all the same."""
_UNIX = "unix:"


class FailurePolicy(StrEnum):
    """What a failing call means: the pod is turned down for now, or the plugin has no opinion."""

    FAIL = "Fail"
    IGNORE = "Ignore"


# Opinions and favours can be missed, verdicts and actions can not.
_MISSABLE = frozenset({_P.SCORE, _P.POST_FILTER, _P.POST_BIND, _P.PLACEMENT_SCORE})
DEFAULT_POLICY: Mapping[ExtensionPoint, FailurePolicy] = MappingProxyType(
    {point: FailurePolicy.IGNORE if point in _MISSABLE else FailurePolicy.FAIL for point in POLICY_POINTS}
)


class ExemptPods(msgspec.Struct, frozen=True):
    """Pods that a plugin's failures cost nothing: of these namespaces, if any are given, with these labels.

    A plugin's own pod belongs here: it is to be scheduled while the plugin is down.
    """

    namespaces: frozenset[str] = frozenset()
    match_labels: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))

    def covers(self, pod: Pod) -> bool:
        """Whether the pod is one of them."""
        if self.namespaces and pod.namespace not in self.namespaces:
            return False
        return all(pod.labels.get(key) == value for key, value in self.match_labels.items())


class PluginTls(msgspec.Struct, frozen=True):
    """Certificates for a plugin over TCP: whom it has to show, and what we show it.

    `server_name` is the name in the plugin's certificate, where that is not its host's.
    """

    ca_file: str
    cert_file: str
    key_file: str
    server_name: str = ""


class Accepted(NamedTuple):
    """Arguments that a plugin is known to have taken."""

    args: Any


@dataclass(frozen=True, slots=True)
class SidecarSpec:
    """One out-of-tree plugin.

    `address` is unix:/path or host:port; a timeout of None leaves the deadline to the plugin's own wish;
    `extension_points` are those where a profile may enable it; `args` is plain JSON for every profile
    that has no arguments of its own for it; `profiles` have the plugin at all its points, with that weight,
    beside those that enable it themselves, save where a profile has one plugin. In `shadow` it is shown what
    they schedule and has no say in it. `metadata_keys` are the labels and annotations that it may write to
    pods (pod_metadata.py). `user` serves its socket, where that is neither the scheduler's own user nor root.
    `accepted` serves where the plugin refuses `args`; it is no difference between two entries.
    """

    name: str
    address: str
    timeout: Duration | None = None
    extension_points: frozenset[ExtensionPoint] = DEFAULT_POINTS
    failure_policy: Mapping[ExtensionPoint, FailurePolicy] = field(default_factory=lambda: DEFAULT_POLICY)
    args: Any = None
    tls: PluginTls | None = None
    shadow: bool = False
    profiles: tuple[str, ...] = ()
    weight: int = 1
    exempt_pods: ExemptPods | None = None
    metadata_keys: tuple[str, ...] | None = None
    user: int | None = None
    command: tuple[str, ...] = ()
    accepted: Accepted | None = field(default=None, compare=False)

    def policy_at(self, point: ExtensionPoint, pod: Pod | None = None) -> FailurePolicy:
        """Give what a failing call at a point means for a pod."""
        if pod is not None and self.exempt_pods is not None and self.exempt_pods.covers(pod):
            return FailurePolicy.IGNORE
        return self.failure_policy.get(point, DEFAULT_POLICY[point])

    def args_for(self, profile: ResolvedProfile) -> Any:
        """Give the arguments for a profile: its pluginConfig entry if there is one, else this list's."""
        return profile.args.get(self.name, self.args)

    def may_write(self, key: str) -> bool:
        """Answer whether the plugin may write labels and annotations of that key to pods."""
        return may_write(key, self.name, self.metadata_keys)


class SocketDirectory(msgspec.Struct, frozen=True):
    """A directory in which plugins appear as NAME.sock; `defaults` are for those that no entry names.

    The defaults have neither name nor address; without profiles they attach nothing.
    """

    path: str
    defaults: SidecarSpec

    def path_of(self, name: str) -> str:
        """Where that plugin's socket is to appear."""
        return f"{self.path.rstrip('/')}/{name}.sock"

    def address_of(self, name: str) -> str:
        """The same as an address."""
        return f"{_UNIX}{self.path_of(name)}"

    def spec_of(self, name: str) -> SidecarSpec:
        """That plugin as one that no entry names."""
        return replace(self.defaults, name=name, address=self.address_of(name))


def arguments_digest(arguments: Any) -> str:
    """Give what stands for arguments where they are compared, and are not to be shown."""
    return hashlib.sha256(msgspec.json.encode(arguments, order="deterministic")).hexdigest()[:16]


def plugin_name_problem(name: str) -> str:
    """Why a plugin can't have that name; empty where it can."""
    if name in IN_TREE:
        return f'"{name}" is an in-tree plugin; choose another name'
    problems = qualified_name_problems(name)
    return f'"{name}" is no plugin name: {problems[0]}' if problems else ""


def catalogue_of(specs: Iterable[SidecarSpec]) -> Catalogue:
    """Give the specs' names with their points, as `load` takes them."""
    return {spec.name: spec.extension_points for spec in specs}


def is_unix(address: str) -> bool:
    """Answer whether an address names a unix socket."""
    return address.startswith(_UNIX)


def unprotected(address: str, tls: PluginTls | None) -> str:
    """Say why that address can't be dialled: it leads over a network, without certificates; else empty."""
    if tls is not None or is_unix(address) or is_loopback(address):
        return ""
    return (
        f'"{address}" is reached over a network: give tls (caFile, certFile, keyFile),'
        " or let the plugin listen on a unix socket or on a loopback address"
    )


def is_loopback(address: str) -> bool:
    """Answer whether host:port is on this machine: 127.0.0.0/8, [::1] or localhost."""
    host = address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def socket_path(address: str) -> str:
    """Give the path of a unix: address, which may be written with three slashes too."""
    path = address.removeprefix(_UNIX)
    return path[2:] if path.startswith("///") else path
