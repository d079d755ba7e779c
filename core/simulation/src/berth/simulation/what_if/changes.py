"""What-if expressions: changes of a cluster, applied at the beginning or during a simulation.

    add-node NODE [xN]                     N copies of a node, without its pods
    add-node cpu=8,memory=32Gi,K/L=V [xN]  N nodes of that shape; what has a `/` and is no amount is a label
    remove-node NODES                      gone, and their pods are to be scheduled anew
    drain NODES                            cordoned, and their pods are to be scheduled anew
    cordon NODES, uncordon NODES
    label NODES KEY=VALUE|KEY- ...
    taint NODES KEY[=VALUE]:EFFECT|KEY- ...
    profile FROM TO                        pods without a node that name one profile, given to another
    after SECONDS CHANGE                   the same later, in virtual time

NODES is a name, `all`, or labels as KEY=VALUE,KEY=VALUE. Pods of a DaemonSet and static pods end with their
node, and those that are being deleted, which have another one in their place already.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from berth.objects.api_object import ObjectMeta, TypedObject
from berth.objects.label_selector import is_label_value, is_qualified_name
from berth.objects.node import Amount, Node, NodeCondition, NodeSpec, NodeStatus
from berth.objects.pods.node_pods import belongs_to_node
from berth.objects.pods.pod import NO_STATUS, Pod
from berth.objects.quantity import nanos
from berth.objects.taint import Taint, TaintEffect
from berth.simulation.errors import ChangeError
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.reading.timeline import LONGEST_SECONDS

HOSTNAME: Final = "kubernetes.io/hostname"
MAX_COPIES: Final = 100_000
TIMES: Final = re.compile(r"x([1-9][0-9]{0,5})", re.ASCII)
MAX_FILE_BYTES: Final = 1 << 20
PODS_OF_A_SHAPE: Final = "110"


class Changed(Protocol):
    """A cluster that can be changed: an input, or one that is being simulated."""

    def nodes(self) -> list[Node]:
        """All nodes."""

    def pods(self) -> list[Pod]:
        """All pods."""

    def put(self, obj: TypedObject) -> None:
        """Create or replace an object."""

    def remove(self, obj: TypedObject) -> None:
        """Take an object away."""


Act = Callable[[Changed], None]


class ClusterChange(msgspec.Struct, frozen=True):
    """One change. Units: `after` in virtual seconds."""

    text: str
    act: Act
    after: float = 0.0


def read_changes(given: Sequence[str]) -> list[ClusterChange]:
    """Parse these expressions, and files with one a line. Raises: ChangeError."""
    return [change for each in given for change in _changes(each)]


def changed(cluster: ClusterInput, changes: Sequence[ClusterChange]) -> ClusterInput:
    """The cluster with the changes of the beginning applied. Raises: ChangeError."""
    made = _InputChanged(cluster.copy())
    for change in changes:
        if not change.after:
            change.act(made)
    return made.cluster


def changed_at_once(cluster: ClusterInput, changes: Sequence[ClusterChange]) -> ClusterInput:
    """The cluster with all changes applied at once. Raises: ChangeError."""
    for change in changes:
        if change.after:
            raise _wrong(change.text, "this is about one moment: leave `after SECONDS` out")
    return changed(cluster, changes)


def evicted_by(before: ClusterInput, now: ClusterInput) -> list[Pod]:
    """The pods that had a node before the changes, and have none now."""
    had = {key for key, pod in before.of(Pod).items() if pod.node_name}
    return [pod for key, pod in now.of(Pod).items() if key in had and not pod.node_name]


class _InputChanged(msgspec.Struct, frozen=True):
    cluster: ClusterInput

    def nodes(self) -> list[Node]:
        return list(self.cluster.of(Node).values())

    def pods(self) -> list[Pod]:
        return list(self.cluster.of(Pod).values())

    def put(self, obj: TypedObject) -> None:
        self.cluster.of(type(obj))[obj.key] = obj

    def remove(self, obj: TypedObject) -> None:
        self.cluster.of(type(obj)).pop(obj.key, None)


def _changes(given: str) -> Iterator[ClusterChange]:
    path = Path(given)
    try:
        is_file = path.is_file()
    except OSError:
        is_file = False
    if not is_file:
        yield parsed(given)
        return
    with path.open("rb") as stream:
        data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ChangeError(f"--what-if: {given}: more than {MAX_FILE_BYTES} bytes; give fewer changes")
    for number, line in enumerate(data.decode("utf-8-sig", errors="replace").splitlines(), 1):
        text = line.partition("#")[0].strip()
        try:
            if text:
                yield parsed(text)
        except ChangeError as error:
            what = str(error).removeprefix("--what-if: ")
            raise ChangeError(f"--what-if: {given}:{number}: {what}") from None


def parsed(text: str) -> ClusterChange:
    """The change of one expression; no file is read. Raises: ChangeError."""
    words = text.split()
    after = 0.0
    if words[:1] == ["after"]:
        after = _seconds(text, words[1:2])
        words = words[2:]
    if not words or words[0] not in _VERBS:
        raise _wrong(text, f"begin with one of {', '.join(_VERBS)}")
    return ClusterChange(text, _VERBS[words[0]](text, words[1:]), after)


def _seconds(text: str, words: list[str]) -> float:
    try:
        seconds = float(words[0])
    except (IndexError, ValueError):
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise _wrong(text, "say how many seconds after the beginning, such as `after 60 drain n0`")
    return seconds


def _wrong(text: str, remedy: str) -> ChangeError:
    return ChangeError(f"--what-if: {text[:100]!r}: {remedy}")


# Nodes.


def _selected(text: str, chosen: str, cluster: Changed) -> list[Node]:
    """The selected nodes. Raises: ChangeError where there is none."""
    if "=" in chosen:
        wanted = [part.partition("=")[::2] for part in chosen.split(",")]
        found = [n for n in cluster.nodes() if all(n.labels.get(key) == value for key, value in wanted)]
    else:
        found = [node for node in cluster.nodes() if chosen in ("all", node.name)]
    if not found:
        raise _wrong(text, f"there is no node {chosen}; give a name, `all`, or labels as KEY=VALUE")
    return found


def _add_node(text: str, words: list[str]) -> Act:
    count = TIMES.fullmatch(words[1]) if len(words) > 1 else None
    if not words or len(words) > 1 + bool(count):
        raise _wrong(text, "give a node or a shape, and how many as x10")
    many = int(count[1]) if count else 1
    if many > MAX_COPIES:
        raise _wrong(text, f"x{MAX_COPIES} at most")
    shape = _shape(text, words[0]) if "=" in words[0] else None

    def act(cluster: Changed) -> None:
        model = shape or _selected(text, words[0], cluster)[0]
        taken, number = {node.name for node in cluster.nodes()}, 0
        for _ in range(many):
            while (name := f"{model.name}-copy-{number}") in taken:
                number += 1
            number += 1
            cluster.put(renamed(model, name))

    return act


def renamed(model: Node, name: str) -> Node:
    """A copy of the node with another name, also in its hostname label."""
    labels = {**model.labels, HOSTNAME: name}
    return msgspec.structs.replace(
        model, metadata=msgspec.structs.replace(model.metadata, name=name, uid=f"/{name}", labels=labels)
    )


def _shape(text: str, written: str) -> Node:
    amounts: dict[str, Amount] = {"pods": PODS_OF_A_SHAPE}
    labels: dict[str, str] = {}
    for part in written.split(","):
        key, _, value = part.partition("=")
        if not is_qualified_name(key):
            raise _wrong(text, f"{key[:60]!r} is no name of a resource or label")
        if _is_amount(value):
            amounts[key] = value
        elif "/" in key and is_label_value(value):
            labels[key] = value
        else:
            raise _wrong(text, f"{part[:60]!r} is neither an amount such as cpu=8 nor a label")
    ready = NodeCondition("Ready", "True")
    status = NodeStatus(allocatable=amounts, conditions=(ready,))
    return Node(metadata=ObjectMeta(name="shape", labels=labels), spec=NodeSpec(), status=status)


def _is_amount(value: str) -> bool:
    try:
        return nanos(value) >= 0
    except ValueError:
        return False


def _on_nodes(act: Callable[[Changed, Sequence[Node]], None]) -> Callable[[str, list[str]], Act]:
    """Parse a verb whose only argument is nodes."""

    def read(text: str, words: list[str]) -> Act:
        if len(words) != 1:
            raise _wrong(text, "give nodes: a name, `all`, or labels as KEY=VALUE")

        def on_all(cluster: Changed) -> None:
            act(cluster, _selected(text, words[0], cluster))

        return on_all

    return read


def _remove(cluster: Changed, nodes: Sequence[Node]) -> None:
    _evict(cluster, nodes)
    for node in nodes:
        cluster.remove(node)


def _drain(cluster: Changed, nodes: Sequence[Node]) -> None:
    _cordon(cluster, nodes)
    _evict(cluster, nodes)


def _cordon(cluster: Changed, nodes: Sequence[Node]) -> None:
    for node in nodes:
        cluster.put(
            msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=True))
        )


def _uncordon(cluster: Changed, nodes: Sequence[Node]) -> None:
    for node in nodes:
        cluster.put(
            msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=False))
        )


def _evict(cluster: Changed, nodes: Sequence[Node]) -> None:
    """Replace every pod of the nodes by a pending one, as its controller would."""
    names = {node.name for node in nodes}
    for pod in cluster.pods():
        if pod.node_name not in names:
            continue
        cluster.remove(pod)
        if belongs_to_node(pod) or _has_successor(pod):
            continue
        metadata = msgspec.structs.replace(pod.metadata, uid=f"{pod.uid}-anew", deletion_timestamp=None)
        cluster.put(Pod(metadata=metadata, template=pod.template, status=NO_STATUS))


def _has_successor(pod: Pod) -> bool:
    """Whether the pod is being deleted and its controller has already replaced it.

    A StatefulSet makes it only once this one is gone.
    """
    return pod.terminating and all(owner.kind != "StatefulSet" for owner in pod.metadata.owner_references)


def _label(text: str, words: list[str]) -> Act:
    pairs = [_label_pair(text, word) for word in words[1:]]
    if not pairs:
        raise _wrong(text, "give nodes, and KEY=VALUE or KEY- for each label")

    def act(cluster: Changed) -> None:
        for node in _selected(text, words[0], cluster):
            labels = {**node.labels}
            for key, value in pairs:
                labels.pop(key, None)
                if value is not None:
                    labels[key] = value
            cluster.put(
                msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))
            )

    return act


def _label_pair(text: str, word: str) -> tuple[str, str | None]:
    key, equals, value = word.partition("=")
    if not equals and key.endswith("-") and is_qualified_name(key[:-1]):
        return key[:-1], None
    if not equals or not is_qualified_name(key) or not is_label_value(value):
        raise _wrong(text, f"{word[:60]!r} is no label; write KEY=VALUE, or KEY- to take it away")
    return key, value


def _taint(text: str, words: list[str]) -> Act:
    taints = [_one_taint(text, word) for word in words[1:]]
    if not taints:
        raise _wrong(text, "give nodes, and KEY=VALUE:EFFECT or KEY- for each taint")

    def act(cluster: Changed) -> None:
        for node in _selected(text, words[0], cluster):
            held = node.spec.taints
            for taint in taints:
                # A taint without an effect means all taints of that key, which are removed.
                held = tuple(t for t in held if t.key != taint.key or taint.effect not in ("", t.effect))
                held = (*held, taint) if taint.effect else held
            cluster.put(msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=held)))

    return act


def _one_taint(text: str, word: str) -> Taint:
    if word.endswith("-") and is_qualified_name(word[:-1]):
        return Taint(word[:-1])
    pair, _, effect = word.partition(":")
    key, _, value = pair.partition("=")
    if effect not in set(TaintEffect) or not is_qualified_name(key) or not is_label_value(value):
        raise _wrong(text, f"{word[:60]!r} is no taint; write KEY=VALUE:NoSchedule, or KEY- to take it away")
    return Taint(key, value, effect)


def _profile(text: str, words: list[str]) -> Act:
    if len(words) != 2:  # noqa: PLR2004 - from and to
        raise _wrong(text, "give two profiles: the one that pods name, and the one they are given to")

    def act(cluster: Changed) -> None:
        for pod in cluster.pods():
            if not pod.node_name and pod.spec.scheduler_name == words[0]:
                cluster.put(pod.with_spec(msgspec.structs.replace(pod.spec, scheduler_name=words[1])))

    return act


_VERBS: Final[dict[str, Callable[[str, list[str]], Act]]] = {
    "add-node": _add_node,
    "remove-node": _on_nodes(_remove),
    "drain": _on_nodes(_drain),
    "cordon": _on_nodes(_cordon),
    "uncordon": _on_nodes(_uncordon),
    "label": _label,
    "taint": _taint,
    "profile": _profile,
}
