"""YAML nodes to the generic tree, as upstream turns YAML into JSON: keys become text, numbers JSON literals.

Keys that are set twice are noted with their lines; of several values the last one counts, so that
type errors are found as upstream finds them.
"""

import math

import msgspec

from berth.config.errors import DecodeError
from berth.config.go_text import float_key, float_text, go_syntax, quote
from berth.config.reading.tree import Number, Value, compact, sorted_object, to_plain
from berth.config.reading.yaml_nodes import AliasNode, ListNode, MapNode, Node, ScalarNode
from berth.config.reading.yaml_scalars import TAG, Scalar, resolve_plain, resolve_tagged

_FEW_ALIASES, _FEW_NODES = 100, 1_000
_MAX_SIGNED = (1 << 63) - 1
_MANY_NODES, _TOO_MANY_NODES = 400_000, 4_000_000

# A key with its type: 1, 1.0, true and "1" are four keys.
_Key = tuple[type, Scalar]


class Conversion(msgspec.Struct):
    """One pass over a document; `duplicates` holds a line for each key that was set again."""

    duplicates: list[str] = msgspec.field(default_factory=list)
    _bad_keys: list[str] = msgspec.field(default_factory=list)
    _bad_numbers: list[str] = msgspec.field(default_factory=list)
    _open: set[int] = msgspec.field(default_factory=set)
    _nodes: int = 0
    _aliased: int = 0
    _alias_depth: int = 0

    def document(self, root: Node) -> Value:
        """Give a document's value.

        Raises:
            DecodeError: it has no form in JSON, or it contains itself, or it repeats aliases beyond reason.
        """
        value = self._value(root)
        # YAML's own mistakes come first, then keys, then numbers, as upstream finds them.
        for problem in (*self._bad_keys, *self._bad_numbers):
            raise DecodeError(problem)
        return value

    def _value(self, node: Node) -> Value:
        self._count()
        if isinstance(node, AliasNode):
            return self._through_alias(node)
        if isinstance(node, ListNode):
            return [self._value(item) for item in node.items]
        if isinstance(node, MapNode):
            members: dict[_Key, Value] = {}
            self._fill(node, members)
            return sorted_object((_key_text(key), value) for key, value in members.items())
        return self._json_scalar(_scalar(node))

    def _fill(self, node: MapNode, members: dict[_Key, Value]) -> None:
        for key_node, value_node in node.pairs:
            if _is_merge(key_node):
                self._merge(value_node, members)
                continue
            key = self._key(key_node, value_node)
            value = self._value(value_node)
            if key in members:
                self.duplicates.append(f"line {value_node.line}: key {_key_source(key)} already set in map")
            members[key] = value

    def _merge(self, node: Node, members: dict[_Key, Value]) -> None:
        # The last of a list is applied first: earlier ones take precedence.
        sources = reversed(node.items) if isinstance(node, ListNode) else [node]
        for source in sources:
            self._count()
            target = source.target if isinstance(source, AliasNode) else source
            if not isinstance(target, MapNode):
                raise DecodeError("yaml: map merge requires map or sequence of maps as the value")
            self._enter(target)
            self._fill(target, members)
            self._open.discard(id(target))

    def _key(self, node: Node, value: Node) -> _Key:
        target = node.target if isinstance(node, AliasNode) else node
        if not isinstance(target, ScalarNode):
            raise DecodeError(f"yaml: invalid map key: {compact(self._value(target))}")
        key = _scalar(target)
        if unsupported := _unsupported_key(key):
            plain = to_plain(self._value(value))
            shown = "<nil>" if plain is None else go_syntax(plain)
            self._bad_keys.append(f"unsupported map key of type: {unsupported}, value: {shown}")
        return type(key), key

    def _json_scalar(self, value: Scalar) -> Value:
        if isinstance(value, bool) or value is None or isinstance(value, str):
            return value
        if isinstance(value, float) and not math.isfinite(value):
            self._bad_numbers.append(f"json: unsupported value: {_unsupported(value)}")
            return None
        return Number(str(value) if isinstance(value, int) else float_text(value))

    def _through_alias(self, node: AliasNode) -> Value:
        self._enter(node.target, node.name)
        self._alias_depth += 1
        value = self._value(node.target)
        self._alias_depth -= 1
        self._open.discard(id(node.target))
        return value

    def _enter(self, target: Node, name: str = "<<") -> None:
        if id(target) in self._open:
            raise DecodeError(f"yaml: anchor '{name}' value contains itself")
        self._open.add(id(target))

    def _count(self) -> None:
        self._nodes += 1
        self._aliased += self._alias_depth > 0
        busy = self._aliased > _FEW_ALIASES and self._nodes > _FEW_NODES
        if busy and self._aliased > self._nodes * _allowed_share(self._nodes):
            raise DecodeError("yaml: document contains excessive aliasing")


def _allowed_share(nodes: int) -> float:
    """Give the share of nodes that may come from aliases: 99 % of few, 10 % of millions."""
    over = (nodes - _MANY_NODES) / (_TOO_MANY_NODES - _MANY_NODES)
    return 0.99 - 0.89 * min(max(over, 0), 1)


def _is_merge(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.text == "<<" and (node.plain or node.tag == f"{TAG}merge")


def _scalar(node: ScalarNode) -> Scalar:
    if node.tag == "!":
        return node.text
    if node.tag is not None:
        return resolve_tagged(node.tag, node.text)
    return resolve_plain(node.text) if node.plain else node.text


def _unsupported(value: float) -> str:
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _unsupported_key(key: Scalar) -> str:
    if key is None:
        return "%!s(<nil>), key: <nil>"
    huge = isinstance(key, int) and key > _MAX_SIGNED
    return f"uint64, key: {key:#x}" if huge else ""


def _key_text(key: _Key) -> str:
    value = key[1]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_key(value)
    return str(value)


def _float_key(value: float) -> str:
    if not math.isfinite(value):
        return {"NaN": ".nan", "+Inf": ".inf", "-Inf": "-.inf"}[_unsupported(value)]
    return float_key(value)


def _key_source(key: _Key) -> str:
    return quote(key[1]) if isinstance(key[1], str) else _key_text(key)
