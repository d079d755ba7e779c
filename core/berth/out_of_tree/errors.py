"""What can go wrong between the scheduler and a plugin in another process.

SidecarError               the call has failed; the extension point's failure policy says what that means
├── NotConnectedError      nobody answers at the address, or the plugin is not configured and synced yet
├── CallFailedError        the plugin was asked and gave an error, or was too late
└── ProtocolError          the plugin answered what the protocol does not allow
"""


class SidecarError(Exception):
    """A call to a plugin has failed; the text names the plugin."""

    def __init__(self, plugin: str, text: str) -> None:
        super().__init__(f"plugin {plugin}: {text}")


class NotConnectedError(SidecarError):
    """The plugin cannot be asked now."""


class CallFailedError(SidecarError):
    """The plugin did not answer, or answered with an error."""


class ProtocolError(SidecarError):
    """The answer breaks the protocol."""
