"""Each share of a GPU lies on a device that exists, has room for it and is of an allowed model.

What a pod got stands in its `gpu-share.berth.dev/devices` annotation, as indices such as `0` or `2,3`; what
it asked for in `count` and `milli` and in the extended resource. Devices of a node count from 0.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec

from berth.demo.checker.documents import MILLI_GPU, CheckedPod, NodeFacts
from berth.demo.checker.quantity import UnreadableError, as_text
from berth.demo.checker.report import Rule, Violation

DEVICES = "gpu-share.berth.dev/devices"
COUNT = "gpu-share.berth.dev/count"
MILLI = "gpu-share.berth.dev/milli"
MODEL = "gpu-share.berth.dev/model"
MODELS = "gpu-share.berth.dev/models"
WHOLE = 1000


class Share(msgspec.Struct, frozen=True):
    """What a pod wants: this many GPUs, this many thousandths of each."""

    count: int
    milli: Fraction


def check_devices(node: NodeFacts, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """Check every GPU pod of a node against the node's devices, and the devices against their pods."""
    users: dict[int, list[tuple[CheckedPod, Fraction]]] = defaultdict(list)
    devices = _devices_of_node(node)
    for pod in pods:
        try:
            share, held = _share(pod), _held(pod)
            for text in _misfits(share, held, devices):
                yield Violation(Rule.GPU_DEVICES, pod.subject, f"{text} (node {node.name})")
            for device in set(held):
                users[device].append((pod, share.milli))
        except UnreadableError as error:
            yield Violation(Rule.GPU_DEVICES, pod.subject, f"{error} (node {node.name})")
    for device, shares in sorted(users.items()):
        yield from _crowded(node, device, shares)


def check_model(node: NodeFacts, pod: CheckedPod) -> Iterator[Violation]:
    """Check that the node's GPUs are of a model that the pod accepts."""
    accepted, model = pod.annotations.get(MODELS), node.labels.get(MODEL, "")
    if accepted and pod.requests.get(MILLI_GPU) and model not in accepted.split("|"):
        text = f"accepts {accepted}, node {node.name} has {model or 'no GPU model'}"
        yield Violation(Rule.GPU_MODEL, pod.subject, text)


def _misfits(share: Share, held: Sequence[int], devices: int) -> Iterator[str]:
    if len(set(held)) != len(held):
        yield f"holds a device twice: {_listed(held)}"
    if len(held) != share.count:
        yield f"asks for {share.count} GPUs and holds {len(held)}"
    if absent := [device for device in held if device >= devices]:
        yield f"holds devices {_listed(absent)} where the node has {devices}"


def _crowded(
    node: NodeFacts, device: int, shares: Sequence[tuple[CheckedPod, Fraction]]
) -> Iterator[Violation]:
    names = ", ".join(pod.key for pod, _ in shares)
    total = sum((milli for _, milli in shares), Fraction(0))
    subject = f"node {node.name} device {device}"
    if len(shares) > 1 and any(milli == WHOLE for _, milli in shares):
        yield Violation(Rule.GPU_DEVICES, subject, f"held whole by one pod and shared: {names}")
    elif total > WHOLE:
        yield Violation(Rule.GPU_DEVICES, subject, f"{as_text(total)} of {WHOLE} milli taken by {names}")


def _devices_of_node(node: NodeFacts) -> int:
    label = node.labels.get(COUNT, "")
    # A node whose label is missing still has the devices that its amount is made of.
    return (
        int(label) if re.fullmatch("[0-9]{1,4}", label) else int(node.allocatable.get(MILLI_GPU, 0) // WHOLE)
    )


def _share(pod: CheckedPod) -> Share:
    asked = pod.requests.get(MILLI_GPU, Fraction(0))
    if not asked:
        return Share(0, Fraction(0))
    count = _whole(pod, COUNT, int(asked // WHOLE) or 1)
    milli = Fraction(_whole(pod, MILLI, 0)) or asked / max(count, 1)
    if count * milli != asked or milli > WHOLE:
        raise UnreadableError(
            f"asks for {as_text(asked)} milli-GPU, annotated as {count} GPUs with {as_text(milli)} of each"
        )
    return Share(count, milli)


def _held(pod: CheckedPod) -> list[int]:
    text = pod.annotations.get(DEVICES, "")
    if text and not re.fullmatch(r"[0-9]{1,4}(,[0-9]{1,4})*", text):
        raise UnreadableError(f"annotation {DEVICES} is {text!r}, no list of indices")
    return [int(index) for index in text.split(",")] if text else []


def _whole(pod: CheckedPod, annotation: str, default: int) -> int:
    text = pod.annotations.get(annotation)
    if text is None:
        return default
    if not re.fullmatch("[0-9]{1,9}", text):
        raise UnreadableError(f"annotation {annotation} is {text!r}, no whole number")
    return int(text)


def _listed(indices: Sequence[int]) -> str:
    return ",".join(map(str, indices))
