"""What a file is that was given for a policy, by its apiVersion and kind: read before anything else of it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from berth.config.descheduling.policy import API_VERSION, KIND

WRITE: Final = f"write apiVersion {API_VERSION}, kind {KIND}, and strategies as plugins of profiles"
OLD_VERSION: Final = "descheduler/v1alpha1"


def head_problem(document: Any) -> tuple[str, str] | None:
    """The field by which the file is no policy, with what it is and a remedy; None where it is one."""
    if not isinstance(document, dict):
        return "", f"found {_shape(document)}; {WRITE}"
    version, kind = _text(document.get("apiVersion")), _text(document.get("kind"))
    if (version, kind) == (API_VERSION, KIND):
        return None
    found = next(_known(document, version, kind), None)
    if found is not None:
        return found
    if kind != KIND:
        return "kind", f"found {_shown(kind)}; {WRITE}"
    return "apiVersion", f"found {_shown(version)}; {WRITE}"


def _known(document: Mapping[str, Any], version: str, kind: str) -> Iterator[tuple[str, str]]:
    """What other programs' files are that hold a policy, or are taken for one."""
    if kind == KIND and version == OLD_VERSION:
        named = document.get("strategies")
        names = (
            ", ".join(sorted(map(str, named))[:3]) if isinstance(named, dict) and named else "its strategies"
        )
        what = f"found {OLD_VERSION}, which descheduler v0.30 read last"
        yield "apiVersion", f"{what}; write {API_VERSION} and {names} as plugins of a profile, params as args"
    if kind == "DeschedulerConfiguration":
        what = "found koordinator's DeschedulerConfiguration, whose profiles are other plugins"
        yield "kind", f"{what}; {WRITE}"
    if kind == "ConfigMap":
        held = document.get("data")
        key = next((name for name, text in _items(held) if KIND in str(text)), "policy.yaml")
        yield "kind", f"found a ConfigMap; write the text of its data {key!r} alone into the file"
    if kind in ("List", "ConfigMapList"):
        yield "kind", f"found a {kind}; {WRITE}"
    if kind == "KubeSchedulerConfiguration":
        yield "kind", f"found the scheduler's configuration; give it as --config. Here, {WRITE}"
    if kind == "KubeDescheduler":
        yield "kind", f"found the object of OpenShift's descheduler operator, which names no plugins; {WRITE}"
    if not version and not kind and isinstance(document.get("deschedulerPolicy"), dict):
        fields = f"write its fields under apiVersion {API_VERSION} and kind {KIND}"
        yield "deschedulerPolicy", f"found the values of the descheduler's Helm chart; {fields}"


def _items(held: Any) -> Iterator[tuple[str, Any]]:
    return iter(held.items() if isinstance(held, dict) else ())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _shown(text: str) -> str:
    return repr(text[:60]) if text else "nothing"


def _shape(value: Any) -> str:
    if value is None:
        return "an empty file"
    return "a list" if isinstance(value, list) else "a value without fields"
