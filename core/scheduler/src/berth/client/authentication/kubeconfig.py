"""Which files, context, cluster and user of a kubeconfig are meant, checked before anything uses them.

The `kubernetes` package loads what is found here; it stays silent about a user that does not exist
and names neither file nor field for the rest, so the questions are asked first, one clear line each.

Called by: credentials.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from berth.client.errors import ConfigurationError

TEXTS = {
    "clusters": (
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "tls-server-name",
        "proxy-url",
    ),
    "users": (
        "token",
        "tokenFile",
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "username",
        "password",
    ),
}
KINDS = {"contexts": "context", "clusters": "cluster", "users": "user"}


class NamedEntry(msgspec.Struct, frozen=True):
    """One named entry, and the file it stands in."""

    file: str
    name: str
    value: Mapping[str, Any]


class KubeconfigContext(msgspec.Struct, frozen=True):
    """The parts of a kubeconfig that one connection uses."""

    paths: str
    context: NamedEntry
    cluster: NamedEntry
    user: NamedEntry | None


def choose(paths: str, context: str = "") -> KubeconfigContext:
    """Find the context in a kubeconfig, or in several joined as in $KUBECONFIG.

    Raises: ConfigurationError when a file is missing or malformed, or a name leads nowhere.
    """
    documents = _documents(paths)
    first = next(iter(documents))
    current = context or next(
        (d["current-context"] for d in documents.values() if d.get("current-context")), ""
    )
    if not current:
        raise ConfigurationError(
            first, "current-context", "no context is chosen", "set current-context to one of its contexts"
        )
    chosen = _find(documents, "contexts", str(current), first, "current-context")
    names = chosen.value
    where = f"contexts[{chosen.name}].context"
    cluster = _find(documents, "clusters", str(names.get("cluster", "")), chosen.file, f"{where}.cluster")
    if not cluster.value.get("server"):
        field = f"clusters[{cluster.name}].cluster.server"
        raise ConfigurationError(cluster.file, field, "is missing", "set it to the API server's URL")
    user = names.get("user")
    found = _find(documents, "users", str(user), chosen.file, f"{where}.user") if user else None
    return KubeconfigContext(os.pathsep.join(documents), chosen, cluster, found)


def _documents(paths: str) -> dict[str, Mapping[str, Any]]:
    """The parsed files by path; of several, those that do not exist are left out, as kubectl does."""
    wanted = [str(Path(path).expanduser()) for path in paths.split(os.pathsep) if path]
    present = [path for path in wanted if Path(path).exists()]
    if not present:
        raise ConfigurationError(
            os.pathsep.join(wanted), "", "the kubeconfig does not exist", "check the path, or leave it out"
        )
    return {path: _document(path) for path in present}


def _document(path: str) -> Mapping[str, Any]:
    remedy = "a kubeconfig is YAML with clusters, contexts and users"
    try:
        document = yaml.safe_load(Path(path).read_bytes())
    except OSError as error:
        raise ConfigurationError(
            path, "", f"cannot be read: {error.strerror}", "check its permissions"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or "not text"
        raise ConfigurationError(path, "", f"{line}not valid YAML: {problem}", remedy) from error
    if not isinstance(document, dict):
        raise ConfigurationError(path, "", "is not a kubeconfig", remedy)
    for plural, singular in KINDS.items():
        _check_list(path, plural, singular, document.get(plural) or [])
    return document


def _check_list(path: str, plural: str, singular: str, entries: object) -> None:
    remedy = f"write {plural} as a list of entries, each with a name and a {singular}"
    if not isinstance(entries, list):
        raise ConfigurationError(path, plural, "is not a list", remedy)
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ConfigurationError(path, f"{plural}[{i}].name", "is missing or no text", remedy)
        if not isinstance(entry.get(singular) or {}, dict):
            raise ConfigurationError(path, f"{plural}[{i}].{singular}", "is not a mapping", remedy)


def _find(
    documents: Mapping[str, Mapping[str, Any]], plural: str, name: str, asking_file: str, asking_field: str
) -> NamedEntry:
    names = []
    for path, document in documents.items():
        for entry in document.get(plural) or []:
            if entry["name"] == name:
                found = NamedEntry(path, name, entry.get(KINDS[plural]) or {})
                _check_texts(found, plural)
                return found
            names.append(entry["name"])
    known = ", ".join(sorted(names)) or "none"
    raise ConfigurationError(
        asking_file,
        asking_field,
        f"there is no {KINDS[plural]} {name!r}",
        f"use one of those in {plural}: {known}",
    )


def _check_texts(entry: NamedEntry, plural: str) -> None:
    for field in TEXTS.get(plural, ()):
        value = entry.value.get(field, "")
        if not isinstance(value, str) or "\0" in value:
            where = f"{plural}[{entry.name}].{KINDS[plural]}.{field}"
            raise ConfigurationError(entry.file, where, "is not text", "put it in quotes, or leave it out")
