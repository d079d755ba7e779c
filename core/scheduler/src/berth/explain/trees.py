"""A tree of groups for people: each group, what it needs, what it has, and what it lacks."""

from collections.abc import Iterator

from berth.explain.schema import TreeGroup
from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, key_of, kind_of
from berth.snapshot.pod_group_states import AnyKey, GroupKey, PodGroupStates, TreeKey

MAX_GROUPS = 100


def tree_of(trees: GroupTrees, states: PodGroupStates, key: AnyKey) -> list[TreeGroup]:
    """The groups of the tree that the group is in, the root first, at most MAX_GROUPS; none of a group alone.

    Cost: O(groups of the tree).
    """
    root = trees.root(key)
    if root is None or isinstance(key_of(root), GroupKey):
        return []
    found: list[TreeGroup] = []
    for one in _below(trees, states, root, 0):
        if len(found) == MAX_GROUPS:
            break
        found.append(one)
    return found


def _below(trees: GroupTrees, states: PodGroupStates, group: AnyGroup, level: int) -> Iterator[TreeGroup]:
    key = key_of(group)
    children = trees.children(key) if isinstance(key, TreeKey) else []
    pods = [states.known(leaf) for leaf in trees.leaves(key)]
    if isinstance(key, TreeKey):
        there = sum(trees.is_complete(key_of(child)) for child in children)
    else:
        there = len(pods[0].pods)
    yield TreeGroup(
        group=group.name,
        type=kind_of(key),
        level=level,
        needed=group.needed,
        there=there,
        pods=sum(len(one.pods) for one in pods),
        scheduled=sum(one.scheduled_count for one in pods),
        lacks=_lacks(group, key, there),
    )
    for child in children:
        yield from _below(trees, states, child, level + 1)


def _lacks(group: AnyGroup, key: AnyKey, there: int) -> str:
    """What keeps this branch from being scheduled; "" where nothing does that is known."""
    if there < group.needed:
        what = "groups are complete" if isinstance(key, TreeKey) else "pods are there"
        return f"{there} of {group.needed} {what}"
    ends = "InitiallyScheduled"
    said = next((c for c in group.status.conditions if c.type.endswith(ends)), None)
    return said.message if said is not None and said.status == "False" else ""
