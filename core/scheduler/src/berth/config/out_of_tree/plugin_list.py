"""Reading the list of out-of-tree plugins.

It is a document of its own, so that the KubeSchedulerConfiguration stays one that kube-scheduler accepts:
a file given by --plugins, or a later document of the configuration's file, which kube-scheduler never reads.

    apiVersion: berth.dev/v1alpha1
    kind: PluginList
    plugins:
    - name: gpu-share
      address: unix:/run/berth/gpu-share.sock
      timeout: 200ms
      extensionPoints: [filter, score, reserve, preBind]
      failurePolicy: {score: Ignore}
      exemptPods: {namespaces: [gpu-share], matchLabels: {app: gpu-share}}
      profiles: [gpu]
      weight: 2
      shadow: true
      args: {policy: pack}
      acceptedArgs: {policy: spread}  # serve while it refuses args
      metadataKeys: [gpu-share.example.com/*]
    directory:
      path: /run/berth/plugins
      profiles: [default-scheduler]

Plugins appear in the directory as NAME.sock; an entry without an address is that of its name there, and the
directory's other fields are for plugins that no entry names. Where a simulation reads the list, an entry may
have a `command` in place of its address, which starts the plugin.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple, TypeGuard

import msgspec

from berth.config.catalogue import ExtensionPoint
from berth.config.duration import Duration, parse_duration
from berth.config.errors import DecodeError, PluginListError
from berth.config.out_of_tree.pod_metadata import key_problem
from berth.config.out_of_tree.sidecars import (
    DEFAULT_POINTS,
    DEFAULT_POLICY,
    POLICY_POINTS,
    SIDECAR_POINTS,
    Accepted,
    ExemptPods,
    FailurePolicy,
    PluginTls,
    SidecarSpec,
    SocketDirectory,
    is_unix,
    plugin_name_problem,
    socket_path,
    unprotected,
)
from berth.config.reading.document import read_document
from berth.config.reading.own_documents import API_VERSION, PLUGIN_LIST, own_document
from berth.config.reading.tree import Object, Value, to_plain, type_word

_FIELDS = (
    "name",
    "address",
    "timeout",
    "extensionPoints",
    "failurePolicy",
    "exemptPods",
    "profiles",
    "weight",
    "shadow",
    "tls",
    "args",
    "acceptedArgs",
    "metadataKeys",
    "user",
)
_DEFAULTS = tuple(name for name in _FIELDS if name not in ("name", "address", "tls", "acceptedArgs"))
_TLS_FIELDS = ("caFile", "certFile", "keyFile", "serverName")
_MAX_WEIGHT = 100
_MAX_USER = 2**31 - 1
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):([0-9]{1,5})")
_MAX_PORT = 65535
_MAX_SOCKET_PATH = 107


class PluginList(NamedTuple):
    """What a list says: its plugins, and the directory in which more may appear."""

    plugins: tuple[SidecarSpec, ...] = ()
    directory: SocketDirectory | None = None


def parse_plugin_list(source: bytes | str, file: str) -> tuple[SidecarSpec, ...]:
    """Give the plugins that a PluginList document describes; `file` is its name in messages.

    Raises:
        PluginListError: with every problem found.
    """
    return read_plugin_list(source, file).plugins


def read_plugin_list(source: bytes | str, file: str, *, commands: bool = False) -> PluginList:
    """Give all that a PluginList document says; `file` is its name in messages.

    With `commands` an entry may have a command in place of its address.

    Raises:
        PluginListError: with every problem found.
    """
    try:
        document = read_document(source)
        is_list = isinstance(document.value, Object) and document.value.last("kind") == PLUGIN_LIST
        another = own_document(source, PLUGIN_LIST) if is_list else None
    except DecodeError as error:
        raise PluginListError(f"{file}: {error}") from None
    if another is not None:
        raise PluginListError(f"{file}: 2 documents of kind {PLUGIN_LIST}; put all entries into one")
    if document.duplicates:
        raise PluginListError(*(f"{file}: {duplicate}" for duplicate in document.duplicates))
    return _list(document.value, file, commands=commands)


def list_beside(source: bytes | str, file: str, *, commands: bool = False) -> PluginList:
    """Give what the PluginList says that stands behind a configuration in the same file, if one does.

    Later documents of other kinds are none of our business: kube-scheduler does not read them either.

    Raises:
        PluginListError: there is such a list and it is wrong, or there are two.
    """
    try:
        document = own_document(source, PLUGIN_LIST)
    except DecodeError as error:
        raise PluginListError(f"{file}: {error}") from None
    return PluginList() if document is None else _list(document, file, commands=commands)


def _list(value: Value, file: str, *, commands: bool) -> PluginList:
    reader = _ListReader(file, commands)
    found = reader.read(value)
    if reader.problems:
        raise PluginListError(*reader.problems)
    return found


class _ListReader(msgspec.Struct):
    """One reading of a list; `problems` collects a line for each thing that is wrong."""

    file: str
    commands: bool
    problems: list[str] = msgspec.field(default_factory=list)

    def read(self, value: Value) -> PluginList:
        top = self._members(value, "", ("apiVersion", "kind", "plugins", "directory"))
        for name, wanted in (("apiVersion", API_VERSION), ("kind", PLUGIN_LIST)):
            if top.get(name) != wanted:
                self._say(name, f"must be {wanted}")
        directory = self._directory(top["directory"]) if "directory" in top else None
        entries = top.get("plugins", None if directory is None else [])
        if not isinstance(entries, list):
            self._say("plugins", "must be a list with an entry for each plugin")
            return PluginList()
        places = [(entry, f"plugins[{index}]") for index, entry in enumerate(entries)]
        specs = [
            self._plugin(entry, path, directory)
            for entry, path in places
            if self._is_object(entry, path, self._fields)
        ]
        self._check_names(specs)
        return PluginList(tuple(specs), directory)

    def _directory(self, value: Value) -> SocketDirectory:
        members = self._members(value, "directory", ("path", *_DEFAULTS))
        path = members.get("path")
        if not isinstance(path, str) or not path.startswith("/"):
            self._say("directory.path", "give the absolute path of a directory for sockets")
            path = ""
        return SocketDirectory(path, self._spec(members, "directory", "", ""))

    def _plugin(self, value: Value, path: str, directory: SocketDirectory | None) -> SidecarSpec:
        members = self._members(value, path, self._fields)
        name = self._name(members.get("name"), f"{path}.name")
        if "command" in members:
            command = self._command(members, path)
            return replace(self._spec(members, path, name, ""), command=command)
        address = members.get("address")
        if address is None and directory is not None and name:
            address = directory.address_of(name)
        return self._spec(members, path, name, self._address(address, f"{path}.address"))

    @property
    def _fields(self) -> tuple[str, ...]:
        return (*_FIELDS, "command") if self.commands else _FIELDS

    def _command(self, members: Mapping[str, Value], path: str) -> tuple[str, ...]:
        for other in ("address", "tls", "user"):
            if other in members:
                self._say(f"{path}.{other}", "is of no use beside a command; give one of them")
        command = to_plain(members["command"])
        if not isinstance(command, list) or not command or not all(isinstance(x, str) and x for x in command):
            self._say(f"{path}.command", "must be a list: a program and its arguments")
            return ("",)
        return tuple(command)

    def _spec(self, members: Mapping[str, Value], path: str, name: str, address: str) -> SidecarSpec:
        points = self._points(members.get("extensionPoints"), f"{path}.extensionPoints")
        return SidecarSpec(
            name=name,
            address=address,
            timeout=self._timeout(members.get("timeout"), f"{path}.timeout"),
            extension_points=points,
            failure_policy=self._policies(members.get("failurePolicy"), points, f"{path}.failurePolicy"),
            args=to_plain(members.get("args")),
            accepted=Accepted(to_plain(members["acceptedArgs"])) if "acceptedArgs" in members else None,
            exempt_pods=self._exempt(members.get("exemptPods"), f"{path}.exemptPods"),
            profiles=self._profiles(members.get("profiles"), f"{path}.profiles"),
            weight=self._weight(members.get("weight"), f"{path}.weight"),
            shadow=self._shadow(members.get("shadow"), points, f"{path}.shadow"),
            tls=self._tls(members.get("tls"), name, address, path),
            metadata_keys=self._metadata_keys(members.get("metadataKeys"), f"{path}.metadataKeys"),
            user=self._user(members.get("user"), address, f"{path}.user"),
        )

    def _user(self, value: Value, address: str, path: str) -> int | None:
        user = to_plain(value)
        if user is None:
            return None
        if not isinstance(user, int) or isinstance(user, bool) or not 0 <= user <= _MAX_USER:
            self._say(path, "must be a user's number")
            return None
        if address and not is_unix(address):
            self._say(path, "is for a unix socket; certificates say who serves host:port")
        return user

    def _metadata_keys(self, value: Value, path: str) -> tuple[str, ...] | None:
        if value is None:
            return None
        keys = to_plain(value)
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            self._say(path, "must be a list of label and annotation keys, or prefix/*")
            return None
        for problem in filter(None, map(key_problem, keys)):
            self._say(path, problem)
        return tuple(keys)

    def _profiles(self, value: Value, path: str) -> tuple[str, ...]:
        if value is None:
            return ()
        names = to_plain(value)
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            self._say(path, "must be a list of profiles by their schedulerName")
            return ()
        return tuple(names)

    def _weight(self, value: Value, path: str) -> int:
        weight = 1 if value is None else to_plain(value)
        if isinstance(weight, int) and not isinstance(weight, bool) and 0 < weight <= _MAX_WEIGHT:
            return weight
        self._say(path, f"must be a number from 1 to {_MAX_WEIGHT}")
        return 1

    def _shadow(self, value: Value, points: frozenset[ExtensionPoint], path: str) -> bool:
        if value is not None and not isinstance(value, bool):
            self._say(path, "must be true or false")
        if value is True and ExtensionPoint.QUEUE_SORT in points:
            self._say(path, "a plugin that orders the queue can't stand in shadow: no other one does")
        return value is True

    def _tls(self, value: Value, name: str, address: str, entry: str) -> PluginTls | None:
        path = f"{entry}.tls"
        if value is None:
            if address and not _address_problem(address) and (problem := unprotected(address, None)):
                self._say(f"{entry}.address", f"plugin {name}: {problem}")
            return None
        files = {name: to_plain(text) for name, text in self._members(value, path, _TLS_FIELDS).items()}
        if is_unix(address):
            self._say(path, "is for host:port; a unix socket is private by its mode")
        elif not all(isinstance(text, str) and text for text in files.values()):
            self._say(path, "must hold texts")
        elif missing := [name for name in _TLS_FIELDS[:3] if name not in files]:
            self._say(path, f"give {', '.join(missing)}: both sides show certificates")
        else:
            return PluginTls(*(str(files.get(name, "")) for name in _TLS_FIELDS))
        return None

    def _exempt(self, value: Value, path: str) -> ExemptPods | None:
        if value is None:
            return None
        members = self._members(value, path, ("namespaces", "matchLabels"))
        namespaces, labels = (
            to_plain(members.get("namespaces", [])),
            to_plain(members.get("matchLabels", Object())),
        )
        if not isinstance(namespaces, list) or not all(isinstance(name, str) for name in namespaces):
            self._say(f"{path}.namespaces", "must be a list of names")
        elif not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
            self._say(f"{path}.matchLabels", "must be an object with a text for each label")
        elif not namespaces and not labels:
            self._say(path, "give namespaces or matchLabels: without both every pod would be exempt")
        else:
            return ExemptPods(frozenset(namespaces), MappingProxyType(labels))
        return None

    def _name(self, value: Value, path: str) -> str:
        if not isinstance(value, str) or not value:
            self._say(path, "give the plugin a name, as profiles will call it")
            return ""
        if problem := plugin_name_problem(value):
            self._say(path, problem)
        return value

    def _check_names(self, specs: Sequence[SidecarSpec]) -> None:
        for index, spec in enumerate(specs):
            if spec.name and any(spec.name == other.name for other in specs[:index]):
                self._say(f"plugins[{index}].name", f'"{spec.name}" is listed already; names must differ')

    def _address(self, value: Value, path: str) -> str:
        problem = _address_problem(value)
        if problem:
            self._say(path, f"{problem}; write unix:/path/to.sock or host:port")
        return value if isinstance(value, str) else ""

    def _timeout(self, value: Value, path: str) -> Duration | None:
        if value is None:
            return None
        try:
            timeout = parse_duration(value if isinstance(value, str) else "")
        except ValueError:
            timeout = Duration(0)
        if timeout <= 0:
            self._say(path, "must be a duration above zero, such as 50ms or 1.5s")
        return timeout

    def _points(self, value: Value, path: str) -> frozenset[ExtensionPoint]:
        if value is None:
            return DEFAULT_POINTS
        if not isinstance(value, list) or not value:
            self._say(path, f"must be a list of: {_listed(SIDECAR_POINTS)}")
            return frozenset()
        return frozenset(point for name in value if (point := self._point(name, path)) is not None)

    def _point(self, name: Value, path: str) -> ExtensionPoint | None:
        if isinstance(name, str) and name in SIDECAR_POINTS:
            return ExtensionPoint(name)
        shown = f'"{name}"' if isinstance(name, str) else type_word(name)
        self._say(path, f"{shown} is no extension point of sidecars; these are: {_listed(SIDECAR_POINTS)}")
        return None

    def _policies(
        self, value: Value, points: frozenset[ExtensionPoint], path: str
    ) -> Mapping[ExtensionPoint, FailurePolicy]:
        chosen: dict[ExtensionPoint, FailurePolicy] = {}
        members = (
            {} if value is None else self._members(value, path, [point.value for point in POLICY_POINTS])
        )
        for name, policy in members.items():
            point = ExtensionPoint(name)
            if point not in points:
                self._say(
                    f"{path}.{name}", "the plugin does not serve this point; remove it here or add it there"
                )
            elif isinstance(policy, str) and policy in set(FailurePolicy):
                chosen[point] = FailurePolicy(policy)
            else:
                self._say(f"{path}.{name}", f"must be {' or '.join(FailurePolicy)}")
        return MappingProxyType({**DEFAULT_POLICY, **chosen})

    def _members(self, value: Value, path: str, known: Sequence[str]) -> dict[str, Value]:
        members: dict[str, Value] = {}
        for name, member in value if self._is_object(value, path, known) else ():
            place = f"{path}.{name}" if path else name
            if name not in known:
                self._say(place, f"unknown field; known ones are: {', '.join(sorted(known))}")
            elif name in members:
                self._say(place, "is written twice; keep one")
            else:
                members[name] = member
        return members

    def _is_object(self, value: Value, path: str, known: Sequence[str]) -> TypeGuard[Object]:
        found = isinstance(value, Object)
        if not found:
            self._say(path, f"must be an object with the fields {', '.join(sorted(known))}")
        return found

    def _say(self, path: str, problem: str) -> None:
        self.problems.append(f"{self.file}: {path}: {problem}" if path else f"{self.file}: {problem}")


def _listed(points: Iterable[ExtensionPoint]) -> str:
    wanted = set(points)
    return ", ".join(point.value for point in ExtensionPoint if point in wanted)


def _address_problem(address: Value) -> str:
    if address is None:
        return "missing"
    if not isinstance(address, str):
        return f"must be a string, not {type_word(address)}"
    if is_unix(address):
        return _socket_problem(address)
    match = _ADDRESS.fullmatch(address)
    return "" if match and 0 < int(match[1]) <= _MAX_PORT else f'"{address}" is no address'


def _socket_problem(address: str) -> str:
    path = socket_path(address)
    if not path.startswith("/"):
        return f'"{address}" holds no absolute path'
    too_long = len(path.encode()) > _MAX_SOCKET_PATH
    return f"the socket's path is longer than {_MAX_SOCKET_PATH} bytes" if too_long else ""
