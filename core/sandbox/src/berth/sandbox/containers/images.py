"""Which images are run, and by which command of this machine."""

import shlex
import shutil
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from berth.sandbox.errors import SandboxError
from berth.sandbox.store import Json

Command = tuple[str, ...]


class Images:
    """Patterns of image names; the first that fits counts.

    An empty command stands for an image that cannot be pulled.
    """

    def __init__(self, patterns: Iterable[tuple[str, Command]] = ()) -> None:
        self._patterns = tuple(patterns)

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Images":
        """Read PATTERN=COMMAND texts.

        Raises: SandboxError when one is not of this form.
        """
        return cls([_parsed(text) for text in texts])

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def runs(self, pod: Json) -> bool:
        """Say whether a container of the pod has an image that is run."""
        spec = pod["spec"]
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        return any(self._find(one.get("image", "")) is not None for one in containers)

    def command(self, container: Json) -> Command | None:
        """Give the command of a container without its arguments; None where the image cannot be had."""
        entrypoint = self._find(container.get("image", ""))
        if not entrypoint:
            return None
        given = container.get("command")
        if not given:
            return entrypoint
        beside = Path(entrypoint[0]).with_name(given[0])
        program = str(beside) if beside.is_file() else shutil.which(given[0]) or given[0]
        return (program, *given[1:])

    def _find(self, image: str) -> Command | None:
        return next((command for pattern, command in self._patterns if fnmatchcase(image, pattern)), None)


def _parsed(text: str) -> tuple[str, Command]:
    pattern, equals, command = text.partition("=")
    if not pattern or not equals:
        raise SandboxError(f"--run-image {text}: write PATTERN=COMMAND, such as 'berth/scheduler:*=berth'")
    words = shlex.split(command)
    if words:
        words[0] = shutil.which(words[0]) or words[0]
    return pattern, tuple(words)
