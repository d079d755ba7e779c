"""A profile's arguments: an entry of `extenders` of a KubeSchedulerConfiguration, as it stands there.

Source: kubescheduler.config.k8s.io/v1 Extender (Kubernetes v1.36).
"""

from dataclasses import dataclass
from typing import Any

from berth.config.duration import Duration, parse_duration
from berth.config.extenders import DEFAULT_HTTP_TIMEOUT
from berth.config.types import ExtenderTls
from berth_http_extender.trust import TrustError, trust_of
from berth_sdk import ArgumentError

_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_TLS_TEXTS = ("serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData")
_VERBS = ("filterVerb", "prioritizeVerb", "bindVerb")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "urlPrefix": _TEXT,
        **dict.fromkeys(_VERBS, _TEXT),
        "preemptVerb": {"const": ""},
        "weight": {"const": 0},
        "enableHTTPS": _FLAG,
        "tlsConfig": {
            "type": "object",
            "properties": {"insecure": _FLAG, **dict.fromkeys(_TLS_TEXTS, _TEXT)},
            "additionalProperties": False,
        },
        "httpTimeout": {"type": "string", "default": "5s"},
        "nodeCacheCapable": _FLAG,
        "managedResources": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": _TEXT, "ignoredByScheduler": {"const": False}},
                "required": ["name"],
                "additionalProperties": False,
            },
        },
        "ignorable": {"const": False},
    },
    "additionalProperties": False,
}

_SET_BESIDE = {
    "preemptVerb": "the plugin protocol can't carry it; keep an extender that preempts under `extenders`",
    "weight": "the plugin's weight is what counts; write it as `weight` in the plugin's entry of the list",
    "ignorable": "write failurePolicy: {filter: Ignore, bind: Ignore} in the plugin's entry of the list",
}
_IGNORED = (
    "the scheduler does that; write the name into ignoredResources of NodeResourcesFit's arguments instead"
)
_TYPES: dict[str, tuple[Any, str]] = {
    "string": (str, "a text"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}

SYSTEM_AUTHORITIES = ExtenderTls()


@dataclass(frozen=True, slots=True)
class Settings:
    """What the arguments say; an empty verb is not called."""

    base: str = ""
    """The URL prefix."""
    filter_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    timeout: Duration = DEFAULT_HTTP_TIMEOUT
    names_only: bool = False
    managed: frozenset[str] = frozenset()
    """The extender is asked about pods that name one of these resources; about all if there are none."""
    tls: ExtenderTls = SYSTEM_AUTHORITIES


def settings_of(arguments: dict[str, Any]) -> Settings:
    """Return the settings; TLS files are read.

    Raises: ArgumentError: with everything that is wrong.
    """
    errors = _mistakes(arguments, SCHEMA["properties"], "")
    if errors:
        raise ArgumentError(*errors)
    base = arguments.get("urlPrefix", "").rstrip("/")
    filter_verb, prioritize_verb, bind_verb = (arguments.get(verb, "") for verb in _VERBS)
    if (base or filter_verb or prioritize_verb or bind_verb) and not base.startswith(("http://", "https://")):
        errors.append(
            f"urlPrefix: {base!r} is no URL; write http:// or https:// and where the extender listens"
        )
    timeout = _timeout(arguments.get("httpTimeout", "5s"))
    if timeout is None:
        errors.append(
            f"httpTimeout: {arguments['httpTimeout']!r} is no duration; write one such as 5s or 500ms"
        )
    managed, tls = arguments.get("managedResources", []), SYSTEM_AUTHORITIES
    errors += [
        error for i, each in enumerate(managed) for error in _of_resource(each, f"managedResources[{i}]")
    ]
    try:
        tls = trust_of(arguments.get("tlsConfig", {}), https=arguments.get("enableHTTPS", False))
    except TrustError as error:
        errors.append(f"tlsConfig.{error}")
    if errors:
        raise ArgumentError(*errors)
    names = frozenset(each["name"] for each in managed)
    by_name = arguments.get("nodeCacheCapable", False)
    limit = timeout or DEFAULT_HTTP_TIMEOUT
    return Settings(base, filter_verb, prioritize_verb, bind_verb, limit, by_name, names, tls)


def _mistakes(given: dict[str, Any], known: dict[str, Any], path: str) -> list[str]:
    """What is of the wrong kind, is not known, or belongs to another object."""
    errors = []
    for name, value in given.items():
        kind = known.get(name)
        if kind is None:
            errors.append(f"{path}{name}: unknown argument; known ones are {', '.join(sorted(known))}")
        elif "const" in kind:
            errors += [f"{path}{name}: {_SET_BESIDE[name]}"] if value not in (kind["const"], None) else []
        elif not isinstance(value, _TYPES[kind["type"]][0]):
            errors.append(f"{path}{name}: {value!r} is not {_TYPES[kind['type']][1]}")
        elif "properties" in kind:
            errors += _mistakes(value, kind["properties"], f"{path}{name}.")
    return errors


def _of_resource(given: Any, path: str) -> list[str]:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str) or not given["name"]:
        return [f"{path}: {given!r} names no resource; write {{name: example.com/thing}}"]
    unknown = given.keys() - {"name", "ignoredByScheduler"}
    errors = [f"{path}.{name}: unknown argument" for name in sorted(unknown)]
    return [*errors, f"{path}.ignoredByScheduler: {_IGNORED}"] if given.get("ignoredByScheduler") else errors


def _timeout(text: str) -> Duration | None:
    """Return a duration that is not below zero, None if the text is none."""
    try:
        found = parse_duration(text)
    except ValueError:
        return None
    return found if found >= 0 else None
