"""A container's environment and arguments.

Source: pkg/kubelet/kubelet_pods.go and k8s.io/kubernetes/third_party/forked/golang/expansion (v1.36).
"""

import os
import re
from collections.abc import Callable, Mapping

from berth.sandbox.containers.folders import MissingError, field_of
from berth.sandbox.store import Json

_REFERENCE = re.compile(r"\$(?:\$|\(([\w.\-]+)\))")
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR")


def environment(
    container: Json, pod: Json, read: Callable[[str, str], Json | None], extra: Mapping[str, str]
) -> dict[str, str]:
    """Give the variables of a container.

    Raises: MissingError when one comes from an object that is not there.
    """
    found = {name: os.environ[name] for name in _KEPT if name in os.environ}
    found |= extra
    for one in container.get("env") or ():
        value = _value(one, pod, read)
        if value is not None:
            found[one["name"]] = expanded(value, found)
    return found


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Give the text with $(NAME) replaced; what is not known stays as it is, $$ is one dollar."""

    def one(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])

    return _REFERENCE.sub(one, text)


def _value(one: Json, pod: Json, read: Callable[[str, str], Json | None]) -> str | None:
    source = one.get("valueFrom")
    if not source:
        return str(one.get("value", ""))
    if "fieldRef" in source:
        return field_of(pod, source["fieldRef"]["fieldPath"])
    if "configMapKeyRef" in source:
        reference = source["configMapKeyRef"]
        data = (read("configmaps", reference.get("name", "")) or {}).get("data") or {}
        if reference["key"] in data:
            return str(data[reference["key"]])
        if reference.get("optional"):
            return None
        raise MissingError(f'configmap "{reference.get("name")}" has no key {reference["key"]}')
    raise MissingError(f"the sandbox does not fill in {one['name']} from {', '.join(source)}")
