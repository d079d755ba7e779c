"""The tree of an expression, and the parser that makes it.

Source: cel-spec doc/langdef.md, "Syntax".
"""

from collections.abc import Generator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from berth.cel.errors import EvaluationError, SyntaxProblemError
from berth.cel.tokens import Token, tokens

MAX_DEPTH = 250
"""How deep expressions may be nested, as in cel-go's parser."""
MAX_LENGTH = 100_000
"""How many characters an expression may have, as in cel-go's parser."""

_BINARY = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 3,
    "<=": 3,
    ">": 3,
    ">=": 3,
    "in": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
}
_CHAINED = ("&&", "||")
_SIGNS = {"!": "!", "-": "-_"}
_WORDS = {"true": True, "false": False, "null": None}
_SMALLEST = 2**63


class Literal(msgspec.Struct, frozen=True):
    """A value as it stands."""

    value: Any


class IdentExpr(msgspec.Struct, frozen=True):
    """A variable."""

    name: str


class Select(msgspec.Struct, frozen=True):
    """A field; `optional` where it may be absent."""

    operand: "Node"
    field: str
    optional: bool = False


class Index(msgspec.Struct, frozen=True):
    """An entry of a list or a map; `optional` where it may be absent."""

    operand: "Node"
    index: "Node"
    optional: bool = False


class CallExpr(msgspec.Struct, frozen=True):
    """A function or an operator, called as a method where there is a target."""

    function: str
    target: "Node | None"
    arguments: "tuple[Node, ...]"


class Listing(msgspec.Struct, frozen=True):
    """A list of its elements; those marked optional may be left out."""

    elements: "tuple[tuple[bool, Node], ...]"


class Mapped(msgspec.Struct, frozen=True):
    """A map of its entries; those marked optional may be left out."""

    entries: "tuple[tuple[bool, Node, Node], ...]"


Node = Literal | IdentExpr | Select | Index | CallExpr | Listing | Mapped


Step = Generator["Step", Any, Any]
"""A part of the parser that hands nested expressions out instead of recursing into them."""


def parse(text: str, *, max_length: int = MAX_LENGTH) -> Node:
    """The tree of an expression.

    Raises: SyntaxProblemError.
    """
    if len(text) > max_length:
        raise SyntaxProblemError(
            f"expression code point size exceeds limit: size: {len(text)}, limit {max_length}"
        )
    try:
        node: Node = _Parser(list(tokens(text))).whole()
    except EvaluationError as error:
        raise SyntaxProblemError(str(error)) from error
    _check_depth(node)
    return node


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right below."""
    match node:
        case Select(operand, _, _):
            return (operand,)
        case Index(operand, index, _):
            return (operand, index)
        case CallExpr(_, target, arguments):
            return arguments if target is None else (target, *arguments)
        case Listing(elements):
            return tuple(element for _, element in elements)
        case Mapped(entries):
            return tuple(part for _, key, value in entries for part in (key, value))
    return ()


def count(node: Node) -> int:
    """How many nodes the tree has."""
    found, left = 0, [node]
    while left:
        found += 1
        left.extend(children(left.pop()))
    return found


def _check_depth(node: Node) -> None:
    """Refuse a tree that is deeper than what walks it may recurse."""
    level: Sequence[Node] = (node,)
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _too_deep()
        level = [below for one in level for below in children(one)]


def _too_deep() -> SyntaxProblemError:
    return SyntaxProblemError(f"expression recursion limit exceeded: {MAX_DEPTH}")


class _Parser:
    """Recursive descent, but that expressions inside of brackets are put on a stack of its own.

    Python's stack holds one level of brackets at a time, so that their number is bounded by MAX_DEPTH alone.
    """

    def __init__(self, found: Sequence[Token]) -> None:
        self._tokens = found
        self._at = 0

    def whole(self) -> Node:
        node: Node = self._run(self._expression())
        if self._peek().kind != "end":
            raise self._unexpected()
        return node

    def _run(self, first: Step) -> Any:
        steps, value = [first], None
        while steps:
            try:
                nested = steps[-1].send(value)
            except StopIteration as finished:
                steps.pop()
                value = finished.value
            else:
                steps.append(nested)
                value = None
                if len(steps) > MAX_DEPTH:
                    raise _too_deep()
        return value

    def _expression(self) -> Step:
        node = yield from self._binary(1)
        if self._take("?"):
            then = yield from self._binary(1)
            self._expect(":")
            otherwise = yield self._expression()
            node = CallExpr("_?_:_", None, (node, then, otherwise))
        return node

    def _binary(self, least: int) -> Step:
        node = yield from self._unary()
        while (level := self._level()) >= least:
            operator = self._next().value
            operands = [node, (yield from self._binary(level + 1))]
            # One node for a chain of these: cel-go balances it, so that its length is not depth.
            while operator in _CHAINED and self._take(operator):
                operands.append((yield from self._binary(level + 1)))
            node = CallExpr(operator, None, tuple(operands))
        return node

    def _level(self) -> int:
        token = self._peek()
        return _BINARY.get(token.value, 0) if token.kind in ("op", "name") else 0

    def _unary(self) -> Step:
        signs = []
        while (token := self._peek()).kind == "op" and token.value in _SIGNS:
            self._at += 1
            signs.append(_SIGNS[token.value])
        token = self._peek()
        if signs and signs[-1] == "-_" and token.kind == "literal" and type(token.value) in (int, float):
            signs.pop()
            self._at += 1
            node = yield from self._suffixes(Literal(-token.value))
        else:
            primary = yield from self._primary()
            node = yield from self._suffixes(primary)
        return _signed(node, signs)

    def _suffixes(self, node: Node) -> Step:
        while True:
            if self._take("."):
                node = yield from self._selected(node)
            elif self._take("["):
                optional = self._take("?")
                index = yield self._expression()
                node = Index(node, index, optional)
                self._expect("]")
            else:
                return node

    def _selected(self, node: Node) -> Step:
        optional = self._take("?")
        token = self._next()
        if token.kind not in ("name", "field"):
            raise self._unexpected(token)
        if not optional and self._take("("):
            arguments = yield from self._arguments(")")
            return CallExpr(token.value, node, arguments)
        return Select(node, token.value, optional)

    def _primary(self) -> Step:
        token = self._next()
        if token.kind == "literal":
            if type(token.value) is int and token.value == _SMALLEST:
                raise SyntaxProblemError("integer overflow")
            return Literal(token.value)
        if token.kind == "name":
            return (yield from self._named(token.value))
        match token.value:
            case "(":
                node = yield self._expression()
                self._expect(")")
                return node
            case "[":
                elements = yield from self._elements()
                return Listing(tuple(elements))
            case "{":
                entries = yield from self._entries()
                return Mapped(tuple(entries))
        raise self._unexpected(token)

    def _named(self, name: str) -> Step:
        if name in _WORDS:
            return Literal(_WORDS[name])
        if name == "in":
            raise SyntaxProblemError("`in` needs a value before it")
        if self._take("("):
            arguments = yield from self._arguments(")")
            return CallExpr(name, None, arguments)
        return IdentExpr(name)

    def _arguments(self, end: str) -> Step:
        found: list[Node] = []
        while not self._take(end):
            argument = yield self._expression()
            found.append(argument)
            if not self._take(","):
                self._expect(end)
                break
        return tuple(found)

    def _elements(self) -> Step:
        found = []
        while not self._take("]"):
            optional = self._take("?")
            element = yield self._expression()
            found.append((optional, element))
            if not self._take(","):
                self._expect("]")
                break
        return found

    def _entries(self) -> Step:
        found = []
        while not self._take("}"):
            optional = self._take("?")
            key = yield self._expression()
            self._expect(":")
            value = yield self._expression()
            found.append((optional, key, value))
            if not self._take(","):
                self._expect("}")
                break
        return found

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _take(self, operator: str) -> bool:
        token = self._peek()
        if token.kind != "op" or token.value != operator:
            return False
        self._at += 1
        return True

    def _expect(self, operator: str) -> None:
        if not self._take(operator):
            raise self._unexpected()

    def _unexpected(self, token: Token | None = None) -> SyntaxProblemError:
        token = token or self._peek()
        what = "end of the expression" if token.kind == "end" else repr(token.value)
        return SyntaxProblemError(f"unexpected {what} at {token.at}")


def _signed(node: Node, signs: Sequence[str]) -> Node:
    """The node with its signs: as in cel-go's parser, two equal ones cancel each other out."""
    for sign, run in groupby(reversed(signs)):
        if sum(1 for _ in run) % 2:
            node = CallExpr(sign, None, (node,))
    return node
