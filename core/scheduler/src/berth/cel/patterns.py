"""Regular expressions as Go has them: RE2's syntax, and time linear in the text.

Bounds: a pattern's program and its states take at most PATTERN_BYTES, a longer pattern does not compile, and
CACHED patterns are kept.

RE2 is imported with the first pattern: most schedulers never see one, and it takes 1.5 MiB.

Source: Go's regexp and regexp/syntax; github.com/google/re2 doc/syntax.txt.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from berth.cel.errors import EvaluationError

if TYPE_CHECKING:
    import re2

PATTERN_BYTES: Final = 2**20
PATTERN_CHARACTERS: Final = 16 * 2**10
CACHED: Final = 64

# A program may take a step for each of its instructions and each character of the text.
STEPS_FOR_WORK: Final = 8
_WORK_OF_A_PATTERN: Final = 2_000
_WORK_OF_AN_INSTRUCTION: Final = 4
_WORK_OF_A_FAILURE: Final = 100_000

_QUOTED: Final = 64
_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "unexpected )",
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class range": "invalid character class range",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\ at end of regexp": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
    "expression too large": "expression too large",
}


class Pattern:
    """A compiled pattern, or why it does not compile."""

    __slots__ = ("_problem", "_search", "size")

    def __init__(self, text: str) -> None:
        import re2  # noqa: PLC0415 (see the top)

        self.size = 1
        self._problem = ""
        try:
            _check(text)
            # Bytes, so that a search does not encode the text again: the options say that they are UTF-8.
            compiled = re2.compile(text.encode(), _options())
            # The library keeps patterns of its own; only those of this module's cache are to stay.
            re2.purge()
        except (re2.error, UnicodeEncodeError, ValueError) as error:
            self._problem = f"error parsing regexp: {_reason(error, text)}"
        else:
            self.size = compiled.programsize
            self._search = compiled.search

    @property
    def problem(self) -> str:
        """Why the pattern does not compile, empty where it does."""
        return self._problem

    @property
    def compiling_work(self) -> int:
        """What compiling it took, in units of work."""
        if self._problem:
            return _WORK_OF_A_FAILURE
        return _WORK_OF_A_PATTERN + _WORK_OF_AN_INSTRUCTION * self.size

    def work(self, characters: int) -> int:
        """What a search through so many characters takes at most, in units of work."""
        return (characters + 1) * self.size // STEPS_FOR_WORK

    def find(self, text: bytes, start: int = 0) -> tuple[int, int] | None:
        """Where the leftmost match from `start` on begins and ends.

        Raises: EvaluationError where the pattern does not compile.
        """
        if self._problem:
            raise EvaluationError(self._problem)
        found = self._search(text, start)
        return None if found is None else found.span()


@lru_cache(maxsize=CACHED)
def compiled(text: str) -> Pattern:
    """The pattern; one that does not compile says so when it is used."""
    return Pattern(text)


def _options() -> "re2.Options":
    import re2  # noqa: PLC0415 (see the top)

    options = re2.Options()
    options.max_mem = PATTERN_BYTES
    options.log_errors = False
    options.never_capture = True
    return options


def _check(text: str) -> None:
    """Refuse what RE2 takes and Go does not: a single byte of a character. Raises: ValueError."""
    if len(text) > PATTERN_CHARACTERS:
        raise ValueError("expression too large")
    escaped = False
    for character in text:
        if escaped and character == "C":
            raise ValueError("invalid escape sequence")
        escaped = character == "\\" and not escaped


def _reason(error: Exception, text: str) -> str:
    """The error in the words of Go's regexp/syntax, with the part of the pattern that it is about."""
    first = error.args[0] if error.args else ""
    reason = first.decode(errors="replace") if isinstance(first, bytes) else str(first)
    for words, go in _WORDS.items():
        if reason.startswith(words):
            part = reason.removeprefix(words).removeprefix(": ") or text
            return f"{go}: `{part[:_QUOTED]}`"
    return f"{reason[:_QUOTED]}: `{text[:_QUOTED]}`"
