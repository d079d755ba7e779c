"""The errors of a call to a sidecar.

SidecarError               the call has failed; the extension point's failure policy says what that means
├── NotConnectedError      no server answers at the address, the plugin is not ready, or its circuit is open
├── CallFailedError        the plugin answered with a gRPC error, or was cut off
│   └── LateError          it did not answer in time
├── PluginFailedError      the plugin answered that something broke on its side
├── CycleTimeUsedUpError   the cycle's time was used up before the plugin could be asked
├── RequestTooLargeError   the pod makes the request larger than any message may be; nothing was sent
└── ProtocolError          the plugin answered what the protocol does not allow
    └── RefusedError       it refused its arguments
"""

from collections.abc import Sequence

from berth.out_of_tree.plugin_text import bounded


class SidecarError(Exception):
    """A call to a plugin has failed; the text names the plugin, and is bounded: plugins write parts of it."""

    def __init__(self, plugin: str, text: str) -> None:
        super().__init__(bounded(f"plugin {plugin}: {text}"))


class NotConnectedError(SidecarError):
    """The plugin cannot be asked now."""


class CallFailedError(SidecarError):
    """The plugin did not answer, or answered with an error."""


class LateError(CallFailedError):
    """The plugin did not answer in time."""


class PluginFailedError(SidecarError):
    """The plugin says that something broke."""


class CycleTimeUsedUpError(SidecarError):
    """The cycle has no time left for the call."""


class RequestTooLargeError(SidecarError):
    """The request would be larger than a message may be: it was not sent, and says nothing of the plugin."""


class ProtocolError(SidecarError):
    """The answer breaks the protocol."""


class RefusedError(ProtocolError):
    """The plugin refused arguments; `errors` are its own words."""

    def __init__(self, plugin: str, errors: Sequence[str]) -> None:
        super().__init__(plugin, "; ".join(errors))
        self.errors = tuple(errors)
