"""What would make a pod fit: small changes, each tried by the engine before it is shown.

    verdicts of all plugins --> edits (guesses) --> trials, nearest nodes first --> proposals

One change of the pod is looked for first; where none does, several for one node. Trials and CPU are bounded,
and the scheduling loop has its turn between two trials.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from berth.explain.claim_edits import ClaimEdit, OtherClasses
from berth.explain.edits import EDITORS, Edit, more_than_said, no_more_than_said, share_free
from berth.explain.loop_turn import LoopTurn
from berth.explain.more_priority import MorePriority
from berth.explain.node_edits import (
    NO_DEVICES,
    NODE_EDITORS,
    Exchanged,
    NodeEdit,
    devices_of,
    new_nodes,
)
from berth.explain.schema import Proposal, Target
from berth.explain.supposed import Supposed
from berth.explain.trying import Trying, Verdict, in_other_processes, in_this_process, without
from berth.explain.volume_places import ExplainedVolumes
from berth.framework.attempts.cycle_budget import CycleMeter, OverBudgetError
from berth.framework.mirrors.listers import Listers
from berth.framework.mirrors.store import Store
from berth.framework.runtime import Framework
from berth.objects.pods.pod import Pod
from berth.preemption.candidates import Candidate
from berth.snapshot.columns.growing import Mask
from berth.snapshot.snapshot import Snapshot

MAX_TRIALS = 40
MAX_ASKED = 12
"""Max trials that also ask sidecars and extenders: of those that all plugins of this process let pass."""
MAX_OF_A_KIND = {"Requests": 1}
MAX_OF_OTHER_KINDS = 2
MAX_ROWS = {"NodeResourcesFit": 10, "TaintToleration": 200, "NodeAffinity": 50}
"""So many nodes are looked at for edits; one for plugins whose edits are the same for all nodes."""
NEAREST_ROWS = 200
MAX_SHAPES = 3
MAX_COMBINED = 4
MAX_NODE_NAMES = 5
MAX_CLAIM_TRIALS = 8
"""Of claims of volumes, and of devices; the other trials are left to nodes and priorities."""

VOLUME_BINDING, DEVICES = "VolumeBinding", "DynamicResources"
VOLUME_PLUGINS = frozenset({VOLUME_BINDING, "VolumeZone"})
"""Those that turn nodes down for where they are."""

Against = Mapping[int, Mapping[str, Verdict]]
"""What each plugin has against each row that does not fit."""


class Proposed(NamedTuple):
    """The proposals, and why not everything was tried, empty where it was."""

    proposals: list[Proposal]
    cut_short: str = ""


class _EnoughError(Exception):
    """No more trials, and why."""


@dataclass(slots=True, kw_only=True)
class ProposalSearch:
    """Looks for changes for one pod that fits on none of `nodes`, a snapshot of its own."""

    trying: Trying
    framework: Framework
    pod: Pod
    nodes: Snapshot
    meter: CycleMeter
    turn: LoopTurn
    against: Against
    listers: Listers
    priority: MorePriority | None = None
    _found: list[Proposal] = field(default_factory=list)
    _trials: int = 0
    _asked: int = 0
    _here: Framework | None = field(init=False)
    """What answers in this process, where more than that is asked."""

    def __post_init__(self) -> None:
        others = self.framework.extenders or in_other_processes(self.framework)
        self._here = in_this_process(self.framework) if others else None

    async def run(self) -> Proposed:
        """Try the changes, the smallest first."""
        try:
            await self._edits(await self.meter.timed(self._single()))
            if not self._found:
                await self._edits(await self.meter.timed(self._combined()))
            await self._more_left()
            await self._nodes_changed()
            await self._claims_changed()
            await self._new_nodes()
            await self._more_priority()
        except OverBudgetError as error:
            return Proposed(self._found, str(error))
        except _EnoughError as error:
            return Proposed(self._found, str(error))
        return Proposed(self._found)

    def _nearest(self) -> list[int]:
        """The rows with the fewest plugins against them."""
        return sorted(self.against, key=lambda row: (len(self.against[row]), row))

    async def _single(self) -> list[Edit]:
        """Edits for nodes that only one plugin keeps the pod from, the most promising first."""
        found: list[Edit] = []
        for plugin, rows in self._alone().items():
            for row in rows[: MAX_ROWS.get(plugin, 1)]:
                found += self._edits_of(plugin, row)
                await self._paid()
        return sorted(_distinct(found), key=lambda edit: (len(edit.patch), -edit.rank))

    def _alone(self) -> dict[str, list[int]]:
        """The rows that only one plugin turns down, by that plugin, those first where least is short."""
        rows: dict[str, list[int]] = {}
        for row, verdicts in self.against.items():
            if len(verdicts) == 1:
                rows.setdefault(next(iter(verdicts)), []).append(row)
        if "NodeResourcesFit" in rows:
            rows["NodeResourcesFit"].sort(key=lambda row: -share_free(self.pod, self.nodes, row))
        return rows

    def _edits_of(self, plugin: str, row: int) -> Iterator[Edit]:
        """What might get the pod past the plugin on that node."""
        editor = EDITORS.get(plugin)
        if editor is not None:
            return editor(self.pod, self.nodes, row)
        return no_more_than_said(self.pod, self.against[row][plugin].status.reasons)

    async def _combined(self) -> list[Edit]:
        """For each kind of nodes that several plugins turn down, one edit for each of them."""
        found: list[Edit] = []
        kinds: set[tuple[str, ...]] = set()
        for row in self._nearest()[:NEAREST_ROWS]:
            plugins = tuple(self.against[row])
            if len(plugins) < 2 or plugins in kinds or not all(name in EDITORS for name in plugins):  # noqa: PLR2004 - several
                continue
            kinds.add(plugins)
            found += list(_together(self.pod, self.nodes, row, plugins))[:MAX_COMBINED]
            await self._paid()
        return list(_distinct(found))

    async def _paid(self) -> None:
        """Charge what was worked to the pod's budget, and let others have their turn if that is due."""
        if self.meter.worked("proposals"):
            await self.meter.breathe()

    async def _edits(self, edits: Sequence[Edit]) -> None:
        target = Target(kind="Pod", name=self.pod.name, namespace=self.pod.namespace)
        for edit in edits:
            if self._enough_of(edit.kind):
                continue
            fits = await self._try(edit.pod, None)
            if fits.any():
                self._take(edit.kind, edit.sentence, target, edit.patch, fits)

    async def _more_left(self) -> None:
        """More of what a plugin counts, where it says what is left and nothing else is against some node."""
        for plugin, rows in self._alone().items():
            more = more_than_said(self.pod, self.against[rows[0]][plugin].status.reasons)
            if not more or plugin in EDITORS or plugin not in self.framework.plugins.by_name:
                continue
            if self._enough_of("Quota"):
                return
            self._count()
            self._count_asked()
            async with self.turn:
                fits = await self._fits_by(without(self.framework, plugin), self.pod)
            if fits.any():
                target = Target(kind="Plugin", name=plugin)
                self._take("Quota", f"the quota of {plugin} must leave {more}", target, (), fits)

    async def _nodes_changed(self) -> None:
        for row in self._nearest()[:NEAREST_ROWS]:
            plugins = list(self.against[row])
            editor = NODE_EDITORS.get(plugins[0]) if len(_without_cordon(plugins)) == 1 else None
            for edit in editor(self.pod, self.nodes.nodes[row]) if editor is not None else ():
                if not self._enough_of(edit.kind):
                    await self._try_node(edit, Target(kind="Node", name=edit.node.name))

    async def _claims_changed(self) -> None:
        """Claims of other classes, where nothing but the plugin that looks at them is against some node."""
        classes = OtherClasses(self.listers)
        alone = {next(iter(plugins)) for plugins in self.against.values() if len(plugins) == 1}
        if VOLUME_BINDING in alone:
            claims = self.listers.persistent_volume_claims
            await self._try_claims(claims, classes.of_storage(self.pod))
        if DEVICES in alone:
            await self._try_claims(self.listers.resource_claims, classes.of_devices(self.pod))

    async def _try_claims(self, store: Store[Any], edits: Iterable[ClaimEdit]) -> None:
        for edit in islice(edits, MAX_CLAIM_TRIALS):
            if self._enough_of(edit.kind):
                return
            self._count()
            async with self.turn:
                with Supposed(store, [edit.supposed]):
                    fits = await self._fits(edit.pod)
            if fits.any():
                self._take(edit.kind, edit.sentence, edit.target, edit.patch, fits)

    async def _new_nodes(self) -> None:
        against = {plugin for plugins in self.against.values() for plugin in plugins}
        places: Sequence[Mapping[str, str]] = ()
        if not VOLUME_PLUGINS.isdisjoint(against):
            listers = self.listers
            places = ExplainedVolumes(listers.persistent_volume_claims, listers.persistent_volumes).of(
                self.pod
            )
        devices = devices_of(self.listers.resource_slices) if DEVICES in against else NO_DEVICES
        for edit in new_nodes(self.pod, self.nodes, MAX_SHAPES, places, devices):
            if await self._try_node(edit, Target(kind="Node")):
                return

    async def _try_node(self, edit: NodeEdit, target: Target) -> bool:
        fits = await self._try(self.pod, edit)
        if not fits.any():
            return False
        self._found.append(
            Proposal(
                kind=edit.kind,
                sentence=_sentence(edit.sentence),
                target=target,
                patch=[dict(operation) for operation in edit.patch],
                nodes=[edit.node.name],
                node_count=1,
            )
        )
        return True

    async def _more_priority(self) -> None:
        """The least of the priorities that do, found by halving."""
        looked = self.priority
        if looked is None or not looked.able():
            return
        priorities = looked.priorities()
        low, high, best = 0, len(priorities) - 1, None
        middle = high
        while low <= high:
            self._count()
            self._count_asked()
            async with self.turn:
                found = await self.meter.timed(looked.victims(priorities[middle], self.meter))
            if found is not None:
                best, high = (priorities[middle], found), middle - 1
            elif best is None:
                return
            else:
                low = middle + 1
            middle = (low + high) // 2
        change = None if best is None else looked.change(*best)
        if best is None or change is None or not await self._fits_without(change.candidate):
            return
        self._found.append(
            Proposal(
                kind="Priority",
                sentence=_sentence(change.sentence),
                target=Target(kind="Pod", name=self.pod.name, namespace=self.pod.namespace),
                patch=[dict(operation) for operation in change.patch],
                nodes=[change.candidate.node_name],
                node_count=1,
                evicts=[victim.key for victim in change.candidate.victims][:100],
            )
        )

    async def _fits_without(self, candidate: Candidate) -> bool:
        """Whether the pod fits on that node without the victims: simulated evictions ask no extender."""
        row = self.nodes.row_of.get(candidate.node_name)
        here = {} if row is None else self.nodes.pods[row]
        victims = {victim.uid for victim in candidate.victims}
        if row is None or not victims <= here.keys():
            return False
        self._count()
        async with self.turn:
            with Exchanged(self.nodes, self.nodes.nodes[row], victims), self._interrupted():
                return bool((await self._fits(self.pod))[row])

    async def _try(self, pod: Pod, edit: NodeEdit | None) -> Mask:
        """Where the pod fits then; on the changed node alone, where one is. Shapes: result bool (n,)."""
        self._count()
        async with self.turn:
            if edit is None:
                with self._interrupted():
                    return await self._fits(pod)
            slices = Supposed(self.listers.resource_slices, edit.slices)
            changed = Exchanged(self.nodes, edit.node)
            with changed as nodes, slices, self._interrupted(supposes=bool(edit.slices)):
                fits = await self._fits(pod)
                only = np.zeros(len(nodes), dtype=bool)
                only[nodes.row_of[edit.node.name]] = True
                return fits & only

    def _interrupted(self, *, supposes: bool = False) -> AbstractContextManager[None]:
        """Within it pods that wait go first, unless others are asked as well, or objects are supposed."""
        return self.turn.interruptible() if self._here is None and not supposes else nullcontext()

    async def _fits(self, pod: Pod) -> Mask:
        """Where the pod fits; others than this process are asked only where it would fit without them."""
        if self._here is not None:
            fits = await self._fits_by(self._here, pod)
            if not fits.any():
                return fits
            self._count_asked()
        return await self._fits_by(self.framework, pod)

    async def _fits_by(self, framework: Framework, pod: Pod) -> Mask:
        work = self.trying.filtered(framework, pod, self.nodes, self.meter, self.pod)
        return (await self.meter.timed(work)).fits

    def _count(self) -> None:
        self._trials += 1
        if self._trials > MAX_TRIALS:
            raise _EnoughError(f"stopped after {MAX_TRIALS} trials")

    def _count_asked(self) -> None:
        self._asked += self._here is not None
        if self._asked > MAX_ASKED:
            raise _EnoughError(f"stopped after {MAX_ASKED} trials that asked other processes")

    def _enough_of(self, kind: str) -> bool:
        return sum(proposal.kind == kind for proposal in self._found) >= MAX_OF_A_KIND.get(
            kind, MAX_OF_OTHER_KINDS
        )

    def _take(
        self, kind: str, sentence: str, target: Target, patch: Sequence[Mapping[str, object]], fits: Mask
    ) -> None:
        rows = np.flatnonzero(fits).tolist()
        self._found.append(
            Proposal(
                kind=kind,
                sentence=_sentence(sentence),
                target=target,
                patch=[dict(operation) for operation in patch],
                nodes=sorted(self.nodes.names[row] for row in rows)[:MAX_NODE_NAMES],
                node_count=len(rows),
            )
        )


def by_row(
    rows: Sequence[int], every: Sequence[Mapping[int, Verdict]], asked_again: Collection[str] = ()
) -> Against:
    """The verdicts of all plugins, by row and plugin.

    Those `asked_again`, about the pod as it would be, count only where no other plugin is against a row.
    """
    found: dict[int, dict[str, Verdict]] = {row: {} for row in rows}
    for verdicts in every:
        for row, verdict in verdicts.items():
            if row in found:
                found[row][verdict.plugin] = verdict
    return {row: _first_of(against, asked_again) for row, against in found.items() if against}


def _first_of(against: Mapping[str, Verdict], asked_again: Collection[str]) -> Mapping[str, Verdict]:
    """What plugins have against a node that answer for the pod as it is, or all where only others have."""
    return {plugin: verdict for plugin, verdict in against.items() if plugin not in asked_again} or against


def _without_cordon(plugins: Sequence[str]) -> Sequence[str]:
    """The plugins without the one that repeats a cordon: its taint comes with it."""
    return (
        [name for name in plugins if name != "TaintToleration"] if "NodeUnschedulable" in plugins else plugins
    )


def _together(pod: Pod, nodes: Snapshot, row: int, plugins: Sequence[str]) -> Iterator[Edit]:
    """All ways of one edit for each plugin, each made of the pod as the one before leaves it."""
    first, *others = plugins
    for edit in list(EDITORS[first](pod, nodes, row))[:MAX_COMBINED]:
        if not others:
            yield edit
            continue
        for more in _together(edit.pod, nodes, row, others):
            sentence = f"{edit.sentence}, and {more.sentence}"
            yield Edit("Several", sentence, (*edit.patch, *more.patch), more.pod)


def _distinct(edits: Sequence[Edit]) -> Iterator[Edit]:
    seen: set[str] = set()
    for edit in edits:
        key = repr(edit.patch)
        if key not in seen:
            seen.add(key)
            yield edit


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
