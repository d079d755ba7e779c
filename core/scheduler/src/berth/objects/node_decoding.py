"""Nodes from the API server's JSON, with what many of them say in the same words held once.

A kubelet reports up to fifty images, each under two names of some hundred letters, and the nodes of a cluster
have much the same ones: an object for each node would be most of a node's memory. Then come labels, and
conditions, which are the same for all nodes that are well.
"""

from weakref import WeakValueDictionary

import msgspec

from berth.objects.decode import decoder
from berth.objects.node import ContainerImage, Node, NodeCondition
from berth.objects.shared_texts import SharedTexts

_decode = decoder(Node)
_share = msgspec.structs.force_setattr

_images: WeakValueDictionary[tuple[tuple[str, ...] | None, int], ContainerImage] = WeakValueDictionary()
"""Images by what they are; one goes with the last node that has it."""
_text = SharedTexts()
_last_conditions: list[tuple[NodeCondition, ...]] = [()]


def decode_node(data: bytes | msgspec.Raw) -> Node:
    """The node of that JSON.

    Raises: UndecodableObjectError.
    """
    node = _decode(data)
    metadata, status = node.metadata, node.status
    if metadata.labels:
        _share(metadata, "labels", {_text(key): _text(value) for key, value in metadata.labels.items()})
    if status.images:
        _share(status, "images", tuple([_image(each) for each in status.images]))
    if status.conditions:
        _share(status, "conditions", _like_the_last(status.conditions))
    return node


def shared_images() -> int:
    """How many different images nodes have."""
    return len(_images)


def _image(image: ContainerImage) -> ContainerImage:
    # Nodes may be decoded in several threads: two objects for one image are as good as one.
    return _images.setdefault((image.names, image.size_bytes), image)


def _like_the_last(conditions: tuple[NodeCondition, ...]) -> tuple[NodeCondition, ...]:
    """The conditions, one object for nodes whose conditions are those of the node before."""
    last = _last_conditions[0]
    if conditions == last:
        return last
    _last_conditions[0] = conditions
    return conditions
