"""What can be wrong with the settings a scheduler is started with.

    ConfigError                one subject, `messages` in the order they are reported
    ├── DecodeError            the text is no KubeSchedulerConfiguration (stage 1)
    ├── ValidationError        its values break rules; every violation is listed (stage 4)
    ├── BuildError             extenders or profiles can't be made from it (stage 5)
    ├── PluginListError        the list of out-of-tree plugins is wrong
    ├── PolicyError            a DeschedulerPolicy is malformed, or asks for what is not done here
    ├── ShardListError         shards do not divide the profiles, or may share nodes
    ├── FeatureGateError       --feature-gates or --emulated-version is wrong
    ├── ReleaseError           the release to follow is none that is known
    └── FlagError              the command line is wrong

All of them mean the same to a caller: say it in one line and exit; a retry changes nothing.
"""

from collections.abc import Iterable


class ConfigError(Exception):
    """Settings that a scheduler can't start with; `messages` holds each complaint once."""

    def __init__(self, *messages: str) -> None:
        self.messages = tuple(dict.fromkeys(messages))
        super().__init__(aggregate(self.messages))


class DecodeError(ConfigError):
    """The text can't be read as a configuration."""


class ValidationError(ConfigError):
    """A readable configuration breaks rules; each message begins with its field path."""


class BuildError(ConfigError):
    """A valid configuration names plugins or extenders that can't be put together."""


class PluginListError(ConfigError):
    """A list of out-of-tree plugins is malformed; each message names file, field and remedy."""


class ShardListError(ConfigError):
    """A list of shards is malformed or may not divide so; each message names file and remedy."""


class PolicyError(ConfigError):
    """A DeschedulerPolicy is malformed, or asks for what is not done; the message names file and field."""


class FeatureGateError(ConfigError):
    """A feature gate is unknown, locked, malformed or lacks another gate that it needs."""


class ReleaseError(ConfigError):
    """A release of Kubernetes is named that is not followed; the message names those that are."""


class FlagError(ConfigError):
    """A command line flag is unknown or has a value that it does not take."""


def aggregate(messages: Iterable[str]) -> str:
    """Join messages as upstream prints a list of errors: one bare, several as [a, b]."""
    distinct = tuple(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
