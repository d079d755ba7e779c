"""What can go wrong between a plugin, its author and the scheduler.

SdkError
├── ArgumentError      the profile's arguments are wrong: tell the user, in Configure's reply
├── ContractError      the author's code broke the contract: the attempt fails with this text
├── AddressError       the address can't be served: say so and exit
└── SyncError          the state stream doesn't fit together: Nack, and wait for a full transfer
    CallError          a call can't be answered as asked: the host repairs it by `cause` and repeats
"""

from enum import Enum

from berth_plugin_proto import state_pb2


class SdkError(Exception):
    """Base of everything the SDK raises."""


class ArgumentError(SdkError):
    """The arguments of a profile are wrong; each error reads `path: what is wrong`."""

    def __init__(self, *errors: str) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


class ContractError(SdkError):
    """A plugin function returned something that can't be sent."""


class AddressError(SdkError):
    """The plugin can't be served at this address."""


class TraceError(SdkError):
    """The environment asks for traces that can't be written."""


class SyncError(SdkError):
    """A message of the state stream can't be applied to what is held."""

    def __init__(self, reason: state_pb2.NackReason.ValueType, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Cause(Enum):
    """The values of the `berth-reason` trailing metadata that goes with FAILED_PRECONDITION."""

    NOT_CONFIGURED = "NOT_CONFIGURED"  # Configure the profile, then repeat
    NOT_SYNCED = "NOT_SYNCED"  # open Sync, wait for the Ack, then repeat
    GENERATION_GONE = "GENERATION_GONE"  # repeat with a newer generation
    POD_UNKNOWN = "POD_UNKNOWN"  # repeat with the pod's object


class CallError(SdkError):
    """A call can't be answered as asked, and its sender can repair that."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause = cause
