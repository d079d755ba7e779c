"""YAML text to a tree of nodes: one document, anchors resolved, nothing interpreted yet.

PyYAML scans and parses; the differences to upstream's parser are evened out here: a tab may separate tokens,
an anchor may be set again, and a directive for another version than 1.1 is refused.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
import yaml
from yaml import events
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner, ScannerError

from berth.config.errors import DecodeError

_BREAKS = "\r\n\x85\u2028\u2029"
_DIRECTIVES = ("YAML", "TAG")
_MAX_DEPTH = 200  # far above any configuration, safely below the interpreter's own limit
_SURROGATES = ("\ud800", "\udfff")


class ScalarNode(msgspec.Struct, frozen=True, eq=False):
    """A scalar with its explicit tag, or None; `plain` says that it stood without quotes."""

    text: str
    tag: str | None
    plain: bool
    line: int


class ListNode(msgspec.Struct, frozen=True, eq=False):
    """A sequence of nodes."""

    items: "list[Node]"
    line: int


class MapNode(msgspec.Struct, frozen=True, eq=False):
    """A mapping: key and value nodes in the order written."""

    pairs: "list[tuple[Node, Node]]"
    line: int


class AliasNode(msgspec.Struct, frozen=True, eq=False):
    """A use of an anchored node."""

    target: "Node"
    name: str
    line: int


Node: TypeAlias = ScalarNode | ListNode | MapNode | AliasNode


class _Stream(Reader, Scanner, Parser):
    """PyYAML's parser with upstream's rules for blanks."""

    def __init__(self, text: bytes | str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def take(self) -> Any:
        """Take the next event off the stream."""
        return self.get_event()  # type: ignore[no-untyped-call]  # the stubs lack its type

    def scan_to_next_token(self) -> None:
        """Skip blanks, comments and line breaks; a tab is a blank unless a simple key could begin at it."""
        if self.index == 0 and self.peek() == "\ufeff":
            self.forward()
        while True:
            tabs = bool(self.flow_level) or not self.allow_simple_key
            while self.peek() == " " or (tabs and self.peek() == "\t"):
                self.forward()
            if self.peek() == "#":
                while self.peek() not in "\0" + _BREAKS:
                    self.forward()
            if not self.scan_line_break():  # type: ignore[no-untyped-call]  # the stubs lack its type
                return
            if not self.flow_level:
                self.allow_simple_key = True

    def scan_directive_name(self, start_mark: yaml.Mark) -> str:
        """Take a directive's name; unknown ones are errors rather than warnings."""
        name: str = super().scan_directive_name(start_mark)  # type: ignore[no-untyped-call]  # no stub
        if name not in _DIRECTIVES:
            raise ScannerError(
                "while scanning a directive", start_mark, "found unknown directive name", start_mark
            )
        return name

    def scan_plain_spaces(self, indent: int, start_mark: yaml.Mark) -> list[str]:
        """Take the blanks inside a plain scalar, tabs included."""
        length = 0
        while self.peek(length) in " \t":
            length += 1
        if length and self.peek(length) not in _BREAKS:
            blanks: str = self.prefix(length)
            self.forward(length)
            return [blanks]
        self.forward(length)
        # An empty list is how the scanner learns that the scalar has ended.
        return super().scan_plain_spaces(indent, start_mark) or []


def first_document(text: bytes | str) -> Node | None:
    """Give the root node of the first document, None where the stream has none.

    Raises:
        DecodeError: the text is no YAML; the message begins with "yaml: ".
    """
    return next(documents(text), None)


def documents(text: bytes | str) -> Iterator[Node]:
    """Yield the root of each document; later ones are not parsed before they are asked for.

    Raises:
        DecodeError: as for `first_document`.
    """
    try:
        stream = _Stream(text)
        stream.take()
        while not stream.check_event(events.StreamEndEvent):
            yield _document(stream)
    except yaml.YAMLError as error:
        raise DecodeError(_one_line(error)) from None


def _document(stream: _Stream) -> Node:
    start = stream.take()
    if start.version not in {None, (1, 1)}:
        raise DecodeError("yaml: found incompatible YAML document")
    root = _node(stream, {}, _MAX_DEPTH)
    stream.take()
    return root


def _node(stream: _Stream, anchors: dict[str, Node], depth: int) -> Node:
    event = stream.take()
    line = event.start_mark.line + 1
    if depth == 0:
        raise DecodeError(f"yaml: line {line}: nested more than {_MAX_DEPTH} levels deep")
    if isinstance(event, events.AliasEvent):
        return _alias(anchors, event.anchor, line)
    node = _fresh_node(event, line)
    if event.anchor:
        anchors[event.anchor] = node
    if isinstance(node, ListNode):
        while not stream.check_event(events.SequenceEndEvent):
            node.items.append(_node(stream, anchors, depth - 1))
        stream.take()
    elif isinstance(node, MapNode):
        while not stream.check_event(events.MappingEndEvent):
            key = _node(stream, anchors, depth - 1)
            node.pairs.append((key, _node(stream, anchors, depth - 1)))
        stream.take()
    return node


def _alias(anchors: dict[str, Node], name: Any, line: int) -> AliasNode:
    if name not in anchors:
        raise DecodeError(f"yaml: unknown anchor '{name}' referenced")
    return AliasNode(anchors[name], name, line)


def _fresh_node(event: Any, line: int) -> ScalarNode | ListNode | MapNode:
    if isinstance(event, events.SequenceStartEvent):
        return ListNode([], line)
    if isinstance(event, events.MappingStartEvent):
        return MapNode([], line)
    if any(_SURROGATES[0] <= char <= _SURROGATES[1] for char in event.value):
        raise DecodeError(f"yaml: line {line}: found invalid Unicode character escape code")
    return ScalarNode(event.value, event.tag, event.implicit[0], line)


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return f"yaml: {' '.join(str(error).split())}"
    return f"yaml: line {mark.line + 1}: {getattr(error, 'problem', None) or 'malformed'}"
