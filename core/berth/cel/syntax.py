"""The tree of an expression, and the parser that makes it.

Source: cel-spec doc/langdef.md, "Syntax".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from berth.cel.errors import EvaluationError, SyntaxProblemError
from berth.cel.tokens import Token, tokens

MAX_DEPTH = 250

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
_WORDS = {"true": True, "false": False, "null": None}
_SMALLEST = 2**63


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as it stands."""

    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A field; `optional` where it may be absent."""

    operand: "Node"
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """An entry of a list or a map; `optional` where it may be absent."""

    operand: "Node"
    index: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator, called as a method where there is a target."""

    function: str
    target: "Node | None"
    arguments: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of its elements; those marked optional may be left out."""

    elements: "tuple[tuple[bool, Node], ...]"


@dataclass(frozen=True, slots=True)
class Mapped:
    """A map of its entries; those marked optional may be left out."""

    entries: "tuple[tuple[bool, Node, Node], ...]"


Node = Literal | Name | Select | Index | Call | Listing | Mapped


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises: SyntaxProblemError.
    """
    try:
        return _Parser(list(tokens(text))).whole()
    except EvaluationError as error:
        raise SyntaxProblemError(str(error)) from error


class _Parser:
    def __init__(self, found: Sequence[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._peek().kind != "end":
            raise self._unexpected()
        return node

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SyntaxProblemError("the expression is nested too deeply")
        node = self._binary(1)
        if self._take("?"):
            then = self._binary(1)
            self._expect(":")
            node = Call("_?_:_", None, (node, then, self._expression()))
        self._depth -= 1
        return node

    def _binary(self, least: int) -> Node:
        node = self._unary()
        while (level := self._level()) >= least:
            operator = self._next().value
            node = Call(operator, None, (node, self._binary(level + 1)))
        return node

    def _level(self) -> int:
        token = self._peek()
        return _BINARY.get(token.value, 0) if token.kind in ("op", "name") else 0

    def _unary(self) -> Node:
        if self._take("!"):
            return Call("!", None, (self._unary(),))
        if not self._take("-"):
            return self._member()
        token = self._peek()
        if token.kind == "literal" and type(token.value) in (int, float):
            self._at += 1
            return self._suffixes(Literal(-token.value))
        return Call("-_", None, (self._unary(),))

    def _member(self) -> Node:
        return self._suffixes(self._primary())

    def _suffixes(self, node: Node) -> Node:
        while True:
            if self._take("."):
                node = self._selected(node)
            elif self._take("["):
                optional = self._take("?")
                node = Index(node, self._expression(), optional)
                self._expect("]")
            else:
                return node

    def _selected(self, node: Node) -> Node:
        optional = self._take("?")
        token = self._next()
        if token.kind not in ("name", "field"):
            raise self._unexpected(token)
        if not optional and self._take("("):
            return Call(token.value, node, self._arguments(")"))
        return Select(node, token.value, optional)

    def _primary(self) -> Node:
        token = self._next()
        if token.kind == "literal":
            if type(token.value) is int and token.value == _SMALLEST:
                raise SyntaxProblemError("integer overflow")
            return Literal(token.value)
        if token.kind == "name":
            return self._named(token.value)
        match token.value:
            case "(":
                node = self._expression()
                self._expect(")")
                return node
            case "[":
                return Listing(tuple(self._elements()))
            case "{":
                return Mapped(tuple(self._entries()))
        raise self._unexpected(token)

    def _named(self, name: str) -> Node:
        if name in _WORDS:
            return Literal(_WORDS[name])
        if name == "in":
            raise SyntaxProblemError("`in` needs a value before it")
        if self._take("("):
            return Call(name, None, self._arguments(")"))
        return Name(name)

    def _arguments(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._take(end):
            found.append(self._expression())
            if not self._take(","):
                self._expect(end)
                break
        return tuple(found)

    def _elements(self) -> list[tuple[bool, Node]]:
        found = []
        while not self._take("]"):
            found.append((self._take("?"), self._expression()))
            if not self._take(","):
                self._expect("]")
                break
        return found

    def _entries(self) -> list[tuple[bool, Node, Node]]:
        found = []
        while not self._take("}"):
            optional = self._take("?")
            key = self._expression()
            self._expect(":")
            found.append((optional, key, self._expression()))
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
