"""Syntax of label keys, label values and resource names, with upstream's complaints.

Source: apimachinery pkg/util/validation/validation.go, pkg/apis/core/v1/helper (Kubernetes v1.36).
"""

import re

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_VALUE = f"({_NAME})?"
_CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)
_USED = "regex used for validation is"
_NAME_RULE = f"must {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', {_USED} '{_NAME}')"
_KEY_RULE = (
    f"a valid label key {_NAME_RULE}"
    " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
    f" start and end with an alphanumeric character (e.g. 'example.com', {_USED} '{_SUBDOMAIN}')"
)
_VALUE_RULE = (
    f"a valid label must be an empty string or {_CHARACTERS}"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', {_USED} '{_VALUE}')"
)
_MAX_NAME, _MAX_PREFIX = 63, 253
_NATIVE = "kubernetes.io/"
_QUOTA_PREFIX = "requests."


def qualified_name_problems(name: str) -> list[str]:
    """Give what is wrong with a `[prefix/]name`; nothing if all is well."""
    prefix, slash, local = name.rpartition("/")
    if "/" in prefix:
        return [_KEY_RULE]
    problems = _prefix_problems(prefix) if slash else []
    if not local:
        problems.append("name part must be non-empty")
    elif _bytes(local) > _MAX_NAME:
        problems.append(f"name part must be no more than {_MAX_NAME} bytes")
    if not re.fullmatch(_NAME, local):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = []
    if _bytes(prefix) > _MAX_PREFIX:
        problems.append(f"prefix part must be no more than {_MAX_PREFIX} bytes")
    if not re.fullmatch(_SUBDOMAIN, prefix):
        problems.append(f"prefix part {_SUBDOMAIN_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """Give what is wrong with a label's value; nothing if all is well."""
    problems = []
    if _bytes(value) > _MAX_NAME:
        problems.append(f"must be no more than {_MAX_NAME} bytes")
    if not re.fullmatch(_VALUE, value):
        problems.append(_VALUE_RULE)
    return problems


def is_extended_resource(name: str) -> bool:
    """Answer whether a resource name is one that devices and extenders may define."""
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not qualified_name_problems(_QUOTA_PREFIX + name)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
