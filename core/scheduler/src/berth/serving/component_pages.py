"""`/flagz` and `/statusz`: what the process was started with, and how it is.

Text for people, or JSON for those who ask for the kind by name.

Source: component-base zpages/flagz, zpages/statusz (Kubernetes v1.36) (gates ComponentFlagz,
ComponentStatusz).
"""

import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web

from berth.config.releases.release import EffectiveVersion, shown
from berth.framework.clock import SYSTEM_CLOCK
from berth.serving.endpoints import Page
from berth.version import version

NAME = "kube-scheduler"
API_VERSION = "config.k8s.io/v1beta1"
GROUP, VERSION = "config.k8s.io", "v1beta1"
NOTICE = "Warning: this page is for people; its form may change at any time."


def component_pages(
    flags: Mapping[str, Any], enabled: Callable[[str], bool], version: EffectiveVersion
) -> Mapping[str, Page]:
    """The pages whose gates are on, by path; `version` is of the kube-scheduler that is followed."""
    pages: dict[str, Page] = {}
    if enabled("ComponentFlagz"):
        shown = {name: _shown(value) for name, value in sorted(flags.items())}
        pages["/flagz"] = _page("Flagz", lambda: {"flags": shown}, lambda: shown)
    if enabled("ComponentStatusz"):
        status = _Status(version)
        pages["/statusz"] = _page("Statusz", status.document, status.lines)
    return pages


class _Status:
    def __init__(self, version: EffectiveVersion) -> None:
        self._started = datetime.fromtimestamp(SYSTEM_CLOCK.wall(), UTC)
        self._since = SYSTEM_CLOCK.monotonic()
        self._version = version

    def document(self) -> dict[str, Any]:
        """The fields of a Statusz."""
        return {
            "startTime": self._started.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "uptimeSeconds": int(SYSTEM_CLOCK.monotonic() - self._since),
            "binaryVersion": version(),
            "emulationVersion": shown(self._version.emulated),
            "followedRelease": shown(self._version.binary),
            "goVersion": f"python {platform.python_version()}",
        }

    def lines(self) -> dict[str, str]:
        """The same for people."""
        return {
            "Started": self._started.strftime("%a %b %d %H:%M:%S UTC %Y"),
            "Up": f"{int(SYSTEM_CLOCK.monotonic() - self._since)} s",
            "Python version": platform.python_version(),
            "Binary version": version(),
            "Emulation version": shown(self._version.emulated),
            "Followed release": shown(self._version.binary),
        }


def _page(kind: str, document: Callable[[], dict[str, Any]], lines: Callable[[], Mapping[str, str]]) -> Page:
    async def answer(request: web.Request) -> web.Response:
        accepted = [_media(part) for part in request.headers.get("Accept", "*/*").split(",")]
        if any(name == "application/json" and _asks_for(kind, about) for name, about in accepted):
            head = {"kind": kind, "apiVersion": API_VERSION, "metadata": {"name": NAME}}
            return web.Response(body=msgspec.json.encode(head | document()), content_type="application/json")
        if not any(name in ("*/*", "text/*", "text/plain") for name, _ in accepted):
            return web.Response(status=406, text="406 Not Acceptable\n")
        text = "".join(f"{name}={value}\n" for name, value in lines().items())
        return web.Response(text=f"\n{NAME} {kind.lower()}\n{NOTICE}\n\n{text}")

    return answer


def _media(part: str) -> tuple[str, dict[str, str]]:
    name, *parameters = (piece.strip() for piece in part.split(";"))
    return name, dict(parameter.partition("=")[::2] for parameter in parameters)


def _asks_for(kind: str, about: Mapping[str, str]) -> bool:
    return (about.get("as"), about.get("v"), about.get("g")) == (kind, VERSION, GROUP)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
