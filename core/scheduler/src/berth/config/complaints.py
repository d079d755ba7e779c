"""Configuration errors as people read them: a line each, with the file and a remedy where there is one."""

import difflib
from collections.abc import Iterator

from berth.config.catalogue import IN_TREE
from berth.config.errors import ConfigError, FeatureGateError, FlagError, PluginListError, ShardListError
from berth.config.scheduler_plugins import hint

_LONGEST_LINE = 600
_UNKNOWN = '" does not exist'


def complaint_lines(error: ConfigError, file: str = "") -> Iterator[str]:
    """Yield a line for each complaint; `file` is the configuration file's name, empty for none."""
    # These name their own origin.
    named = isinstance(error, FeatureGateError | FlagError | PluginListError | ShardListError)
    prefix = f"{file}: " if file and not named else ""
    for message in error.messages:
        line = " ".join(message.split())
        # Some messages quote the whole file.
        shown = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
        yield f"{prefix}{shown}{_hint(line)}"


def _hint(message: str) -> str:
    if not message.endswith(_UNKNOWN):
        return ""
    name = message.split('"')[-2]
    counterpart = hint(name)
    if counterpart:
        return f" ({counterpart})"
    close = difflib.get_close_matches(name, IN_TREE, n=1)
    guess = f"did you mean {close[0]}? " if close else ""
    return f" ({guess}An out-of-tree plugin must be in a PluginList, see --plugins)"
