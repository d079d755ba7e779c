"""Whether a pod's queue has room for it, and the words that say why not."""

from collections.abc import Mapping

from berth_queues.amounts import Amounts, room
from berth_queues.registry import Registry
from berth_queues.tree import Queue

OVER_LIMIT = "would be over its limit of"
NOTHING_LEFT = "its quota is used and nothing is left to borrow of"


def refusal(registry: Registry, name: str, asked: Amounts, pods: int = 1) -> str | None:
    """Return why the queue can't have this on top of what it uses, None if it can.

    `pods` are those of a group that ask for it together. Cost: O(depth * resources).
    """
    queue = registry.queue(name)
    if queue is None:
        return None
    lacking = lacks(queue, asked)
    if not lacking:
        return None
    limits = {r: most - queue.used.get(r, 0) for r in lacking if (most := queue.most(r)) is not None}
    over = {resource: left for resource, left in limits.items() if left < asked[resource]}
    together = f" for {pods} pods of a group together" if pods > 1 else ""
    if over:
        return f"{name} {OVER_LIMIT} {', '.join(sorted(over))}{together}: {room(dict(sorted(over.items())))}"
    return f"{name}: {NOTHING_LEFT} {', '.join(lacking)}{together}: {room(lacking)}"


def lacks(queue: Queue, asked: Amounts) -> Mapping[str, int]:
    """Return how much is left of each resource of which the queue can't have what is asked for, by name."""
    left = ((resource, queue.available(resource)) for resource in sorted(asked))
    return {resource: n for resource, n in left if n is not None and n < asked[resource] and asked[resource]}


def is_refusal(text: str) -> bool:
    """Return whether a node was turned down with such words."""
    return OVER_LIMIT in text or NOTHING_LEFT in text
