"""Which labels and annotations of pods an out-of-tree plugin may write.

An entry of the plugin list names keys, or `prefix/*` for all keys of a prefix. An entry that names none
allows the keys whose prefix begins with the plugin's own name, such as `gpu-share.example.com/devices` for
gpu-share: what others read of a pod they have under names of their own. What Kubernetes and its controllers
keep of a pod under reserved keys is never a plugin's to write: to lose pod-template-hash takes a pod away
from its owner.

Source: docs/protocol.md "Limits"; https://kubernetes.io/docs/reference/labels-annotations-taints.
"""

from collections.abc import Sequence

from berth.config.rules.names import qualified_name_problems

_ALL = "/*"
_RESERVED_PREFIXES = ("kubernetes.io", "k8s.io")
_OF_CONTROLLERS = frozenset(
    {
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "pod-template-generation",
        "pod-template-hash",
    }
)


def may_write(key: str, plugin: str, allowed: Sequence[str] | None) -> bool:
    """Answer whether a plugin whose entry allows these keys, or says nothing, may write that one."""
    if is_reserved(key):
        return False
    prefix, slash, _ = key.rpartition("/")
    if allowed is None:
        return bool(slash) and (prefix == plugin or prefix.startswith(f"{plugin}."))
    return key in allowed or (bool(slash) and f"{prefix}{_ALL}" in allowed)


def is_reserved(key: str) -> bool:
    """Answer whether no plugin may write that key."""
    prefix = key.rpartition("/")[0]
    return key in _OF_CONTROLLERS or any(
        prefix == reserved or prefix.endswith(f".{reserved}") for reserved in _RESERVED_PREFIXES
    )


def key_problem(key: str) -> str:
    """Say why an entry can't allow that key, or those keys; empty where it can."""
    example = f"{key.removesuffix(_ALL)}/any" if key.endswith(_ALL) else key
    if problems := qualified_name_problems(example):
        return f'"{key}" is neither a key nor prefix/*: {problems[0]}'
    if is_reserved(example):
        return f'"{key}" belongs to Kubernetes and its controllers; plugins may not write it'
    return ""
