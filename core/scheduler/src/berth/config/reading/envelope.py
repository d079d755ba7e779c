"""Which kind of object a document says it is: the checks of apiVersion and kind.

Source: apimachinery pkg/runtime/serializer/json (Kubernetes v1.36).
"""

import msgspec

from berth.config.errors import DecodeError
from berth.config.go_text import quote
from berth.config.reading.schema import KINDS
from berth.config.reading.tree import Object, Value, type_word
from berth.config.types import API_VERSION

GROUP, _, VERSION = API_VERSION.partition("/")
_SCHEME = "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme/scheme.go:29"
_ENVELOPE_TYPE = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_UNREADABLE = "couldn't get version/kind; json parse error: "


class KindId(msgspec.Struct, frozen=True):
    """A group, a version and a kind."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """Group and version as written in files."""
        return f"{self.group}/{self.version}" if self.group else self.version


def identify(value: Value, text: str, default_kind: str = "") -> KindId:
    """Give the registered kind of the group that a document is; `default_kind` fills in what is missing.

    Raises:
        DecodeError: the envelope is missing, malformed or unknown.
    """
    api_version, kind = _envelope(value)
    group, version = _group_version(api_version)
    if default_kind:
        kind = kind or default_kind
        if not version and group in {"", GROUP}:
            group, version = GROUP, VERSION
    found = KindId(group, version, kind)
    if not kind:
        raise DecodeError(f"Object 'Kind' is missing in '{text}'")
    if not version:
        raise DecodeError(f"Object 'apiVersion' is missing in '{text}'")
    if found.api_version != API_VERSION or kind not in KINDS:
        version_text = f"version {quote(found.api_version)} in scheme {quote(_SCHEME)}"
        raise DecodeError(f"no kind {quote(kind)} is registered for {version_text}")
    return found


def _envelope(value: Value) -> tuple[str, str]:
    if value is not None and not isinstance(value, Object):
        raise DecodeError(
            f"{_UNREADABLE}json: cannot unmarshal {type_word(value)} into Go value of type {_ENVELOPE_TYPE}"
        )
    fields = {"apiversion": "", "kind": ""}
    wrong: list[str] = []
    for name, member in value or ():
        # This one reading ignores letter case upstream; the strict one that follows does not.
        field = name.lower()
        if field not in fields or member is None:
            continue
        if isinstance(member, str):
            fields[field] = member
        else:
            shown = {"apiversion": "apiVersion"}.get(field, field)
            wrong.append(f"cannot unmarshal {type_word(member)} into Go struct field .{shown} of type string")
    if wrong:
        raise DecodeError(f"{_UNREADABLE}json: {wrong[0]}")
    return fields["apiversion"], fields["kind"]


def _group_version(api_version: str) -> tuple[str, str]:
    if api_version in {"", "/"}:
        return "", ""
    if api_version.count("/") > 1:
        raise DecodeError(f"unexpected GroupVersion string: {api_version}")
    group, _, version = api_version.rpartition("/")
    return group, version
