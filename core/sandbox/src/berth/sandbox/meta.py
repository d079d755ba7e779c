"""Object metadata: what the server writes into it, and which names and labels it accepts.

Source: staging/src/k8s.io/apiserver/pkg/registry/rest/{create,update,meta}.go,
apimachinery/pkg/api/validation and apimachinery/pkg/util/validation (v1.36).
"""

import os
import random
import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from berth.sandbox.errors import Cause, invalid_value, required
from berth.sandbox.store import Json

ORDER: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch

SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)
LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    f"'{_LABEL}')"
)
LABEL_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
    f"used for validation is '{_LABEL_VALUE}')"
)
QUALIFIED_TEXT: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED}')"
)
# Without vowels and look-alikes, as upstream, so that no words come about.
_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED_PREFIX: Final = 58

Clock = Callable[[], float]


@lru_cache(maxsize=8)
def _stamp(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def timestamp(seconds: float) -> str:
    """Write a time as metav1.Time does, to the second."""
    return _stamp(int(seconds))


def new_uid() -> str:
    """Make a version 4 UUID."""
    text = os.urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


def generated_name(prefix: str) -> str:
    """Make a name from generateName."""
    return prefix[:_MAX_GENERATED_PREFIX] + "".join(random.choices(_SUFFIX_ALPHABET, k=5))


def ordered(metadata: Json) -> Json:
    """Put the fields in the order in which the API server prints them; drop what is empty."""
    return {key: metadata[key] for key in ORDER if metadata.get(key) not in (None, "", {}, [])}


def check_labels(labels: Any, path: str) -> list[Cause]:
    """Find label keys and values that are not allowed."""
    found = []
    for key, value in (labels or {}).items():
        found += check_label_key(key, path)
        if not isinstance(value, str):
            found.append(invalid_value(path, value, "must be a string"))
        elif len(value) > 63:  # noqa: PLR2004 (the limit of a DNS label)
            found.append(invalid_value(path, value, "must be no more than 63 characters"))
        elif not _is_label_value(value):
            found.append(invalid_value(path, value, LABEL_VALUE_TEXT))
    return found


@lru_cache(maxsize=4096)
def _bad_label_key(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        return "prefix part must be non-empty"
    if prefix and not _is_subdomain(prefix):
        return f"prefix part {SUBDOMAIN_TEXT}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:  # noqa: PLR2004 (the limit of a DNS label)
        return "name part must be no more than 63 characters"
    return "" if _is_qualified(name) else QUALIFIED_TEXT


def check_label_key(key: str, path: str) -> list[Cause]:
    """Find out whether a label or annotation key, a resource or a taint name is not allowed."""
    problem = _bad_label_key(key)
    return [invalid_value(path, key, problem)] if problem else []


def check_name(name: str, path: str, *, label: bool = False) -> list[Cause]:
    """Find out whether a name is not a DNS subdomain, or not a DNS label."""
    if not name:
        return [required(path)]
    limit, good, text = (63, _is_label, LABEL_TEXT) if label else (253, _is_subdomain, SUBDOMAIN_TEXT)
    if len(name) > limit:
        return [invalid_value(path, name, f"must be no more than {limit} characters")]
    return [] if good(name) else [invalid_value(path, name, text)]


def check_metadata(metadata: Json, *, any_name: bool, label_name: bool) -> list[Cause]:
    """Find what is wrong in an object's metadata; `any_name` is for kinds whose names are path segments."""
    if not metadata.get("name"):
        return [required("metadata.name", "name or generateName is required")]
    found = [] if any_name else check_name(metadata["name"], "metadata.name", label=label_name)
    found += check_labels(metadata.get("labels"), "metadata.labels")
    for key in metadata.get("annotations") or {}:
        found += check_label_key(key.lower(), "metadata.annotations")
    return found
