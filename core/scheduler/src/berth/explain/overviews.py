"""The wider view: a group of pods, a node, a profile, the queue.

Pods that are written alike are one class here, of which one pod is tried. All lists are bounded.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import msgspec
import numpy as np

from berth.explain.attempt_log import AttemptLog, TriedPod
from berth.explain.causes import why
from berth.explain.explainer import EngineFindings, Explainer, ExplainOptions
from berth.explain.grouping import refusal
from berth.explain.proposals import Proposed
from berth.explain.schema import (
    Count,
    ExplainedClass,
    NodeAmount,
    NodeExplanation,
    PodGroupExplanation,
    ProfileExplanation,
    QueuedPod,
    QueueOverview,
    TreeGroup,
)
from berth.explain.trees import tree_of
from berth.explain.trying import PodTrial, Verdict
from berth.framework.attempts.cycle_budget import CycleMeter, OverBudgetError
from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.queue.pools.pod_kinds import like
from berth.queue.scheduling_queue import SchedulingQueue
from berth.queue.sub_queues import ACTIVE, BACKOFF, UNSCHEDULABLE
from berth.snapshot.pod_group_states import AnyKey, GroupKey, PodGroupStates, TreeKey, group_of
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

MAX_CLASSES = 20
MAX_MEMBERS = 100
CLASSES_OF_A_GROUP = 5
MAX_EXAMPLES = 5
MAX_COUNTS = 50
MAX_IN_QUEUE = 20
LATEST_PODS = 1000
MAX_MESSAGE = 300


class UnknownError(LookupError):
    """There is nothing of that name; says where it was looked for."""


class Overviews(msgspec.Struct, frozen=True, kw_only=True):
    """Answers between two turns of the scheduling loop, by the explainer of pods."""

    explainer: Explainer
    queue: SchedulingQueue
    attempts: AttemptLog
    trees: GroupTrees
    group_states: PodGroupStates | None
    watched_pods: Callable[[], Iterable[Pod]]
    """All pods that the watch brought, whichever scheduler they name."""

    async def pod_group(self, namespace: str, name: str) -> PodGroupExplanation:
        """Where the pods of a group, or of a tree's part of that name, stand. Raises: UnknownError."""
        key: AnyKey = GroupKey(namespace, name)
        async with self.explainer.turn:
            if self.trees.get(key) is None and self.trees.get(TreeKey(namespace, name)) is not None:
                key = TreeKey(namespace, name)
            group, states = self.trees.get(key), self.group_states or PodGroupStates()
            pods = [pod for leaf in self.trees.leaves(key) for pod in states.known(leaf).pods.values()]
            tree = tree_of(self.trees, states, key)
            if group is None and not pods:
                raise UnknownError(
                    f"no PodGroup {key} is known, and no pod names it; groups need the feature gate "
                    "GenericWorkload, and the namespace is given with -n"
                )
            known = [self.explainer.cache.get_pod(pod.uid) or pod for pod in pods]
            kinds = Counter(str(self.explainer.states.of(pod).kind) for pod in known)
            left = [pod for pod in known if not pod.node_name]
            fresh = await self.explainer.fresh()
            meter = self.explainer.meter(namespace, len(fresh))
        scheduled = len(known) - len(left)
        together, lacking, cut_short = await self._together(left, fresh, meter)
        least = group.min_count if isinstance(group, PodGroup) else None
        return PodGroupExplanation(
            group=str(key),
            cause=_cause_of_group(group, len(known), scheduled, together, lacking, tree=tree),
            min_count=least,
            pods=len(known),
            scheduled=scheduled,
            fit_together=together,
            states=dict(kinds),
            classes=lacking,
            cut_short=cut_short,
            tree=tree,
        )

    async def _together(
        self, pods: Sequence[Pod], nodes: Snapshot, meter: CycleMeter
    ) -> tuple[int, list[ExplainedClass], str]:
        """How many pods find a node beside those before them, what others lack, and what was left out."""
        together, lacking, cut_short = 0, [], ""
        ordered = [pod for alike in by_class(pods) for pod in alike]
        if len(ordered) > MAX_MEMBERS:
            cut_short = f"only {MAX_MEMBERS} pods were tried"
        stuck: dict[PodTemplate | str, list[Pod]] = {}
        for pod in ordered[:MAX_MEMBERS]:
            framework = self.explainer.frameworks.get(pod.spec.scheduler_name)
            if framework is None or like(pod) in stuck:
                stuck.setdefault(like(pod), []).append(pod)
                continue
            try:
                async with self.explainer.turn:
                    found = await meter.timed(
                        self.explainer.on_all(framework, pod, nodes, meter, ExplainOptions())
                    )
                if found.tried is not None and found.tried.fits.any():
                    _place(nodes, pod, found.tried)
                    together += 1
                    continue
                stuck[like(pod)] = [pod]
                lacking.append((pod, found, await self.explainer.proposed(framework, pod, found)))
            except OverBudgetError as error:
                cut_short = str(error)
                break
        classes = [_lacking(stuck[like(pod)], found, more) for pod, found, more in lacking]
        return together, classes[:CLASSES_OF_A_GROUP], cut_short

    async def node(self, name: str, profiles: Collection[str]) -> NodeExplanation:
        """What is free on the node, and what it would take of these profiles' pods. Raises: UnknownError."""
        explainer = self.explainer
        async with explainer.turn:
            explainer.cache.update_snapshot(explainer.snapshot)
            nodes = explainer.snapshot
            row = nodes.row_of.get(name)
            if row is None:
                raise UnknownError(f"no node {name} is known; kubectl get nodes lists those that there are")
            shown = self._of_node(nodes, row)
            classes = by_class(record.pod for record in self._records(profiles))
            fresh = await explainer.fresh()
            meter = explainer.meter("", len(nodes))
        found, cut_short = await self._on_node(fresh, name, classes[:MAX_CLASSES], meter)
        fitting, waiting = sum(one.count for one in found if one.fits), sum(map(len, classes))
        return msgspec.structs.replace(
            shown,
            cause=cause_of_node(waiting, fitting),
            waiting=waiting,
            fitting=fitting,
            classes=sorted(found, key=fitting_first),
            classes_left_out=len(classes) - len(found),
            cut_short=cut_short,
        )

    def _of_node(self, nodes: Snapshot, row: int) -> NodeExplanation:
        """The node itself, before any pod is tried on it."""
        node = nodes.nodes[row]
        nominated = self.queue.nominator.nominated_pods_for_node(node.name)
        amounts = []
        for name in nodes.resource_names[:MAX_COUNTS]:
            offered = nodes.offered(name)
            most, taken = 0 if offered is None else int(offered[row]), int(nodes.held(name)[row])
            if most or taken:
                amounts.append(
                    NodeAmount(resource=name, allocatable=most, requested=taken, free=most - taken)
                )
        return NodeExplanation(
            node=node.name,
            cause="",
            unschedulable=node.spec.unschedulable,
            taints=[f"{t.key}={t.value}:{t.effect}" for t in node.spec.taints[:MAX_COUNTS]],
            pods=int(nodes.pod_count[row]),
            allowed_pods=int(nodes.allowed_pods[row]),
            amounts=amounts,
            nominated=[pod.key for pod in islice(nominated, MAX_EXAMPLES)],
        )

    async def _on_node(
        self, nodes: Snapshot, name: str, classes: Iterable[Sequence[Pod]], meter: CycleMeter
    ) -> tuple[list[ExplainedClass], str]:
        """What the node is to each class, as far as the CPU goes, and why not to all."""
        found: list[ExplainedClass] = []
        for alike in classes:
            pod = alike[0]
            framework = self.explainer.frameworks.get(pod.spec.scheduler_name)
            if framework is None:
                continue
            try:
                async with self.explainer.turn:
                    against = await meter.timed(self._against(framework, pod, nodes, name, meter))
            except OverBudgetError as error:
                return found, str(error)
            found.append(
                ExplainedClass(
                    profile=framework.profile_name,
                    count=len(alike),
                    pods=[pod.key for pod in alike[:MAX_EXAMPLES]],
                    fits=not against,
                    refusals=[refusal(v.plugin, int(v.status.code), v.status.reasons) for v in against],
                )
            )
        return found, ""

    async def _against(
        self, framework: Framework, pod: Pod, nodes: Snapshot, name: str, meter: CycleMeter
    ) -> list[Verdict]:
        """All that speaks against the pod on that node, nothing where it fits."""
        row, trying = nodes.row_of[name], self.explainer.trying
        tried = await trying.tried(framework, pod, nodes, meter)
        if row not in tried.against:
            return []
        every = await trying.by_plugin(framework, pod, nodes, meter)
        return [verdicts[row] for verdicts in every if row in verdicts] or [tried.against[row]]

    async def profile_of_group(self, namespace: str, name: str) -> str:
        """The profile of the group's pods, which may be another scheduler's; "" where there is no pod of it.

        Cost: O(pods) where none of them is ours.
        """
        key = GroupKey(namespace, name)
        async with self.explainer.turn:
            ours = () if self.group_states is None else self.group_states.known(key).pods.values()
            found = chain(ours, (pod for pod in self.watched_pods() if group_of(pod) == key))
            return next((pod.spec.scheduler_name for pod in found), "")

    async def profile(self, name: str) -> ProfileExplanation:
        """What the profile's pods met lately. Raises: UnknownError."""
        async with self.explainer.turn:
            framework = self._framework(name)
            of_profile = (tried for tried in self.attempts.latest() if tried.profile == name)
            tried = list(islice(of_profile, LATEST_PODS))
        results = Counter(pod.attempts[-1].result for pod in tried)
        rejected = counted((", ".join(pod.attempts[-1].rejected_by), pod.key) for pod in tried)
        messages = counted((pod.attempts[-1].message[:MAX_MESSAGE], pod.key) for pod in tried)
        return ProfileExplanation(
            profile=name,
            cause=_cause_of_profile(tried, results, rejected),
            pods=len(tried),
            results=dict(results),
            rejected_by=rejected,
            messages=messages,
            plugins=plugins_by_point(framework),
            extenders=[extender.name for extender in framework.extenders],
        )

    def _framework(self, profile: str) -> Framework:
        framework = self.explainer.frameworks.get(profile)
        if framework is None:
            profiles = ", ".join(self.explainer.frameworks)
            raise UnknownError(f"no profile {profile}; there are: {profiles}")
        return framework

    async def queued(self, profile: str, beside: Collection[str]) -> QueueOverview:
        """The queue that the profile shares with those `beside` it: who is next, and what others wait for.

        Raises: UnknownError.
        """
        async with self.explainer.turn:
            self._framework(profile)
            return self._queued({profile, *beside})

    def _records(self, profiles: Collection[str]) -> Iterator[QueuedPodInfo]:
        """The waiting pods of these profiles: a replica has those of other replicas' profiles, too."""
        return (record for record in self.queue.records() if record.pod.spec.scheduler_name in profiles)

    def _queued(self, profiles: Collection[str]) -> QueueOverview:
        queue = self.queue
        upcoming = [queue.record(pod.namespace, pod.name) for pod in queue.upcoming(MAX_IN_QUEUE)]
        active = [r for r in upcoming if r is not None and r.pod.spec.scheduler_name in profiles]
        by_place: dict[str, list[QueuedPodInfo]] = {place: [] for place in (ACTIVE, BACKOFF, UNSCHEDULABLE)}
        for record in self._records(profiles):
            by_place[queue.place_of(record)].append(record)
        pool = by_place[UNSCHEDULABLE]
        gates = [(record, queue.gate_of(record)) for record in pool]
        gated = [(gate.plugin or "PodGroup", record) for record, gate in gates if gate is not None]
        rejected = [record for record, gate in gates if gate is None]
        backing_off = sorted(by_place[BACKOFF], key=lambda record: queue.position_of(record).until)
        oldest = min(chain.from_iterable(by_place.values()), key=first_seen, default=None)
        return QueueOverview(
            counts={
                ACTIVE: len(by_place[ACTIVE]),
                BACKOFF: len(by_place[BACKOFF]),
                UNSCHEDULABLE: len(rejected),
                "gated": len(gated),
                "inFlight": sum(1 for _ in queue.in_flight()),
                "waitingAtPermit": len(self.explainer.states.waiting_pods),
            },
            profiles=sorted(profiles),
            active=[self._queued_pod(record) for record in active[:MAX_IN_QUEUE]],
            backing_off=[self._queued_pod(record) for record in backing_off[:MAX_IN_QUEUE]],
            unschedulable=counted((", ".join(sorted(r.rejectors)), r.pod.key) for r in rejected),
            gated=counted((plugin, record.pod.key) for plugin, record in gated),
            longest_wait=None if oldest is None else self._queued_pod(oldest),
        )

    def _queued_pod(self, record: QueuedPodInfo) -> QueuedPod:
        until, shown = self.queue.position_of(record).until, self.explainer.states.shown
        return QueuedPod(
            pod=record.pod.key,
            profile=record.pod.spec.scheduler_name,
            priority=record.pod.priority,
            since=shown(first_seen(record)),
            attempts=record.attempts,
            until=shown(until) if until else "",
        )


def first_seen(record: QueuedPodInfo) -> float:
    """Since when the pod waits, over all of its attempts. Units: seconds of the monotonic clock."""
    first = record.initial_attempt_timestamp
    return record.timestamp if first is None else first


def cause_of_node(waiting: int, fitting: int) -> str:
    """What is said of a node first."""
    if not waiting:
        return "No pod waits."
    return f"{fitting} of {waiting} waiting pods would fit on the node now, one at a time."


def fitting_first(one: ExplainedClass) -> tuple[bool, int]:
    """The key by which classes of pods are put in order: those that fit, then the largest."""
    return not one.fits, -one.count


def by_class(pods: Iterable[Pod]) -> list[list[Pod]]:
    """The pods that no plugin of this process distinguishes together, the largest classes first."""
    classes: dict[PodTemplate | str, list[Pod]] = {}
    for pod in pods:
        classes.setdefault(like(pod), []).append(pod)
    return sorted(classes.values(), key=lambda alike: (-len(alike), alike[0].key))


def counted(pairs: Iterable[tuple[str, str]]) -> list[Count]:
    """How many pods each thing was met by, the most frequent first; what is empty is left out."""
    found: dict[str, list[str]] = {}
    for what, pod in pairs:
        if what:
            found.setdefault(what, []).append(pod)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        Count(what=what, pods=len(pods), examples=pods[:MAX_EXAMPLES]) for what, pods in ordered[:MAX_COUNTS]
    ]


def plugins_by_point(framework: Framework) -> dict[str, list[str]]:
    """The names of a profile's plugins by extension point, as its configuration calls the points."""
    points = framework.plugins
    lists: Mapping[str, Iterable[object]] = {
        "preEnqueue": points.pre_enqueue,
        "queueSort": points.queue_sort,
        "preFilter": points.pre_filter,
        "filter": points.filter,
        "postFilter": points.post_filter,
        "preScore": points.pre_score,
        "score": [plugin for plugin, _ in points.score],
        "reserve": points.reserve,
        "permit": points.permit,
        "preBind": points.pre_bind,
        "bind": points.bind,
        "postBind": points.post_bind,
    }
    return {point: list(_names(plugins)) for point, plugins in lists.items()}


def _names(plugins: Iterable[object]) -> Iterator[str]:
    for plugin in plugins:
        yield str(getattr(plugin, "name", ""))


def _place(nodes: Snapshot, pod: Pod, tried: PodTrial) -> None:
    """Let the pod count on the node that scored highest, for those that are tried after it."""
    rows = np.flatnonzero(tried.fits)
    row = int(rows[0]) if tried.scores is None else int(tried.scores.rows[tried.scores.totals.argmax()])
    nodes.count_apart(row, 1, PodInfo(pod.placed_on(nodes.names[row])))


def _lacking(alike: Sequence[Pod], found: EngineFindings, proposed: Proposed) -> ExplainedClass:
    """What pods of one class lack beside the others of their group."""
    shown = found.shown(alike[0], all_reasons=False, wide=False)
    refusals = shown.refusals or (shown.groups[0].refusals if shown.groups else [])
    return ExplainedClass(
        profile=alike[0].spec.scheduler_name,
        count=len(alike),
        pods=[pod.key for pod in alike[:MAX_EXAMPLES]],
        cause=why(refusals) if refusals else shown.message,
        remedy=proposed.proposals[0].sentence if proposed.proposals else "",
        refusals=refusals,
    )


def _cause_of_group(
    group: AnyGroup | None,
    pods: int,
    scheduled: int,
    together: int,
    lacking: Sequence[ExplainedClass],
    *,
    tree: Sequence[TreeGroup],
) -> str:
    if group is None:
        return f"Pods name the group ({pods}), and there is no PodGroup of that name: create it."
    least = group.min_count if isinstance(group, PodGroup) else None
    if least is not None and pods < least:
        return f"The gang needs {least} pods and has {pods}: {least - pods} more have to be created."
    left = pods - scheduled
    if tree and tree[0].there < tree[0].needed:
        return f"The tree {tree[0].group} waits: {tree[0].lacks}."
    if not left:
        return "All pods of the group have a node."
    needed = "" if least is None else f" ({least} are needed at once)"
    first = f" The others: {lacking[0].cause}." if lacking else ""
    return f"Of {left} pods without a node {together} would fit together now{needed}.{first}"


def _cause_of_profile(
    tried: Sequence[TriedPod], results: Mapping[str, int], rejected: Sequence[Count]
) -> str:
    if not tried:
        return "No pod of the profile was tried lately."
    scheduled = results.get("scheduled", 0)
    text = f"Of the last {len(tried)} pods, {scheduled} were scheduled at their last attempt"
    if rejected:
        text += f"; most of the others were rejected by {rejected[0].what} ({rejected[0].pods})"
    return f"{text}."
