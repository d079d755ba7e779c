"""Objects from upstream's template files: Go's text/template with .Index, .Count, an operation's own
parameters and functions, then YAML.

Source: test/integration/scheduler_perf/operations.go getTemplateFuncs (Kubernetes v1.36.2).
"""

import math
import re
from functools import cache
from pathlib import Path

import yaml

from tests.scheduler_perf.errors import PerfError

ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")
TOKEN = re.compile(r"[()]|[^\s()]+")
# Objects whose keys are names that users choose, not fields.
MAPS = {
    *("labels", "annotations", "matchLabels", "nodeSelector", "requests", "limits", "capacity"),
    *("allocatable", "attributes", "counters", "parameters", "data", "stringData"),
}


def _mod(a, b):
    return int(math.fmod(int(a), int(b)))


FUNCTIONS = {
    "AddFloat": lambda *numbers: sum(numbers),
    "AddInt": lambda *numbers: int(sum(numbers)),
    "SubtractFloat": lambda a, b: a - b,
    "SubtractInt": lambda a, b: int(a - b),
    "MultiplyFloat": lambda *numbers: math.prod(numbers),
    "MultiplyInt": lambda *numbers: int(math.prod(numbers)),
    "DivideFloat": lambda a, b: a / b,
    "DivideInt": lambda a, b: int(a / b),
    "Mod": _mod,
}


class ObjectTemplate:
    """The objects of one file, by index; `parameters` are what it reads besides that, by name."""

    def __init__(self, path, parameters=None):
        self.path = path
        self._text = _read(path)
        self._parameters = {f".{name}": value for name, value in (parameters or {}).items()}
        known = (".Index", ".Count", *self._parameters)
        self._parts = [_Action(path, part, known).value for part in ACTION.split(self._text)[1::2]]
        self._literals = ACTION.split(self._text)[0::2]
        self._fixed = None if self._parts else self._parsed(self._text)

    def document(self, index=0, count=1):
        """The object with that index of so many; the caller may change it at its top levels.

        Raises: PerfError.
        """
        if self._fixed is not None:
            return copied(self._fixed)
        names = {**self._parameters, ".Index": index, ".Count": count}
        values = [_shown(part(names)) for part in self._parts] + [""]
        text = "".join(each for pair in zip(self._literals, values, strict=True) for each in pair)
        return self._parsed(text)

    def _parsed(self, text):
        try:
            document = yaml.load(text, Loader=safe_loader())
        except yaml.YAMLError as error:
            raise PerfError(f"{self.path}: not YAML ({error}): mend the file") from None
        if not isinstance(document, dict):
            raise PerfError(f"{self.path}: holds no object: give it one")
        return with_field_names(document)


@cache
def safe_loader():
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _read(path):
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise PerfError(
            f"{path}: {error.strerror}: the tree lacks a file that it names; take all of it"
        ) from None


def copied(value):
    """A copy of a document, for the caller to change."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


def with_field_names(value, *, fields=True):
    """The document with its fields as the API spells them: Go reads them in any case."""
    if isinstance(value, list):
        return [with_field_names(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        (key[:1].lower() + key[1:] if fields else key): with_field_names(each, fields=key not in MAPS)
        for key, each in value.items()
    }


class _Action:
    """One action; `value` is a function of the names' values that gives its value."""

    def __init__(self, path, text, known):
        self._place = f"{path}: {{{{{text}}}}}"
        self._known = known
        self.value, rest = self._call(TOKEN.findall(text))
        if rest:
            raise PerfError(
                f"{self._place}: {rest[0]!r} is not understood: only names and functions of numbers are"
            )

    def _call(self, tokens):
        operands = []
        while tokens and tokens[0] != ")":
            operand, tokens = self._operand(tokens)
            operands.append(operand)
        if not operands:
            raise PerfError(f"{self._place} says nothing")
        first, *others = operands
        if not isinstance(first, str):
            return first, tokens
        function = FUNCTIONS[first]
        return lambda names: _called(function, [each(names) for each in others]), tokens

    def _operand(self, tokens):
        token, *rest = tokens
        if token == "(":
            inner, rest = self._call(rest)
            if rest[:1] != [")"]:
                raise PerfError(f"{self._place}: a parenthesis is not closed")
            return inner, rest[1:]
        if token in self._known:
            return (lambda names: names[token]), rest
        if token in FUNCTIONS:
            return token, rest
        try:
            number = float(token) if "." in token else int(token)
        except ValueError:
            known = ", ".join([*self._known, "numbers", *sorted(FUNCTIONS)])
            raise PerfError(f"{self._place}: {token!r} is not known: {known} are") from None
        return (lambda _: number), rest


def _called(function, values):
    """The function of numbers, which may be written as text."""
    return function(*(float(each) if isinstance(each, str) else each for each in values))


def _shown(value):
    """A value as Go's %v has it."""
    return f"{value:g}" if isinstance(value, float) else str(value)
