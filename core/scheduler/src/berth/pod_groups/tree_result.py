"""What the result of a tree of groups means for each of its groups.

A group that was not tried shares the status of the one above it; so does one that has a place in vain, as a
group above it was turned down.

Source: pkg/scheduler/schedule_one_podgroup.go completePodGroupAlgorithmResult (Kubernetes v1.37, v1.38).
"""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, key_of
from berth.framework.status import Status
from berth.pod_groups.counting import Counting
from berth.pod_groups.group_result import Branch, GroupResult
from berth.snapshot.pod_group_states import AnyKey, TreeKey


def of_tree(branch: Branch) -> GroupResult:
    """The result of a tree: the root's status, and its pods, with a node where all groups above agree."""
    result, placed = replace(branch.result, branch=branch), {id(leaf) for leaf in branch.placed()}
    result.members = {
        uid: one
        for leaf in branch.every()
        for uid, one in leaf.result.members.items()
        if id(leaf) in placed or not one.node_name
    }
    return result


class TreeResults(msgspec.Struct, frozen=True):
    """Gives each group of a tree its result."""

    trees: GroupTrees
    counting: Counting
    whole: GroupResult
    """The root's, with what preemption came to."""

    def every(self, root: AnyGroup) -> Iterator[tuple[AnyKey, GroupResult]]:
        """Each group of the tree, the root first."""
        yield from self._below(root, self.whole.branch, None)

    def _below(
        self, group: AnyGroup, branch: Branch | None, above: Status | None
    ) -> Iterator[tuple[AnyKey, GroupResult]]:
        key, status = key_of(group), self._status(branch, above)
        yield key, self._result(branch, status)
        if isinstance(key, TreeKey):
            tried = {} if branch is None else {child.key: child for child in branch.children}
            for child in self.trees.children(key):
                yield from self._below(child, tried.get(key_of(child)), status)

    def _status(self, branch: Branch | None, above: Status | None) -> Status:
        if self.whole.branch is None or above is None:
            return self.whole.decided if self.whole.branch is not None else self.whole.status
        if branch is None:
            return above
        own = branch.result.status
        broken_above = not (above.ok or above.rejected)
        if not above.ok and (own.ok or (broken_above and own.rejected and self.counting.names_plugins)):
            return above
        return own

    def _result(self, branch: Branch | None, status: Status) -> GroupResult:
        whole, members = self.whole, {} if branch is None else branch.result.members
        if whole.broken:
            return GroupResult(whole.status, members=members)
        own = GroupResult(status, whole.waits_on_preemption, members, decided=status)
        own.nominations = whole.nominations
        if status.ok:
            return own
        said = own.because(whole.status.own_reasons[len(whole.decided.own_reasons) :])
        return replace(said, of_untried=status, of_placed=self.counting.of_placed(said.status))
