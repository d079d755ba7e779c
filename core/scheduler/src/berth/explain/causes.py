"""The cause and the remedy in a sentence each: the first two lines that a reader sees."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from berth.explain.lacking_claims import OF_CLAIMS, Lacking
from berth.explain.schema import NodeVerdicts, PodState, Proposal, Refusal, StateKind
from berth.objects.pods.pod import Pod
from berth.snapshot.pod_group_states import group_of

FEW = 3
MAX_MESSAGE = 1000
EXTENDER = "extender "
REMEDIES = {
    "NodeResourcesFit": "Request less, or add a node that offers what the pod requests.",
    "TaintToleration": "The taints say what is wrong with the nodes: kubectl describe node.",
    "NodeAffinity": "Ask for labels that some node has: kubectl get nodes --show-labels.",
    "VolumeBinding": "Look at the pod's claims and their volumes: kubectl describe pvc.",
    "VolumeRestrictions": "Look at the pod's claims, and at who uses them: kubectl describe pvc.",
    "VolumeZone": "The volumes are in other zones than the nodes: kubectl describe pv.",
    "NodeVolumeLimits": "Free a volume on a node, add a node, or start the driver where it is missing.",
    "DynamicResources": "Look at the claims, their classes and what drivers offer: "
    "kubectl get resourceclaims,deviceclasses,resourceslices.",
    "InterPodAffinity": "Look at the pods that the terms select, and where they are.",
    "PodTopologySpread": "Add nodes in the domains that have too few of these pods.",
}
"""Where no change of the pod was found that helps, by the plugin that turns most nodes down."""
WAITING_FOR_A_GROUP = (StateKind.NOT_QUEUED, StateKind.WAITING_AT_PERMIT)
WAITING_IN_QUEUE = (StateKind.ACTIVE, StateKind.BACKING_OFF, StateKind.UNSCHEDULABLE)


def cause_and_remedy(
    pod: Pod,
    state: PodState,
    nodes: NodeVerdicts | None,
    proposals: Sequence[Proposal],
    last_message: str,
    *,
    lacks: Sequence[Lacking] = (),
) -> tuple[str, str]:
    """Why the pod is where it is, and what its owner can do, empty where nothing has to be done.

    `last_message` is what came of its last attempt, empty where none failed; `lacks` is what its claims lack.
    """
    if state.kind in WAITING_IN_QUEUE:
        group = group_of(pod)
        if group is not None and last_message and nodes is not None and nodes.feasible:
            return _with_its_group(group.name, nodes, last_message)
        cause, remedy = _pending(state, nodes)
        if OF_CLAIMS.intersection(_refusing(state, nodes)):
            cause, remedy = _with_claims(cause, remedy, lacks)
        return cause, proposals[0].sentence if proposals else remedy
    if state.kind is StateKind.NOT_OURS:
        return _not_ours(pod.spec.scheduler_name, state)
    held = _HELD.get(state.kind)
    if held is None:
        return _settled(state), ""
    cause, remedy = held(state)
    if state.kind in (StateKind.NOT_QUEUED, StateKind.IN_PRE_BIND):
        cause, remedy = _with_claims(cause, remedy, lacks)
    group = group_of(pod)
    if group is not None and state.kind in WAITING_FOR_A_GROUP:
        # That it waits for minCount says nothing of what another pod of the group lacks.
        remedy = f"{_look_at(group.name)} {remedy}"
    return cause, remedy


def _settled(state: PodState) -> str:
    """What is said of a pod that needs no help."""
    after = " and is being deleted" if state.deleting else ""
    return {
        StateKind.SCHEDULING: "The pod is being scheduled at this moment.",
        StateKind.BINDING: f"Node {state.node} was chosen, and the pod is being bound to it.",
        StateKind.BOUND: f"The pod is on node {state.node}{after}.",
        StateKind.DELETING: "The pod is being deleted, so it is not scheduled.",
    }[state.kind]


def _gated(state: PodState) -> tuple[str, str]:
    gates = ", ".join(state.gates)
    return (
        f"The pod has scheduling gates: {gates}.",
        "What set them removes them (spec.schedulingGates); until then it is not scheduled.",
    )


def _not_queued(state: PodState) -> tuple[str, str]:
    wait = state.waits_for[0]
    if not wait.plugin:
        remedy = "Create the PodGroup that its spec.schedulingGroup names."
        return f"The pod is not queued yet: {wait.message}.", remedy
    said = f": {wait.message}" if wait.message else ""
    remedy = REMEDIES.get(wait.plugin) or f"See what {wait.plugin} waits for."
    return f"{wait.plugin} keeps the pod out of the queue{said}.", remedy


def _waiting_at_permit(state: PodState) -> tuple[str, str]:
    waits = "; ".join(
        f"{wait.plugin}{f' ({wait.message})' if wait.message else ''}, until {wait.until} at the latest"
        for wait in state.waits_for
    )
    return (
        f"Node {state.node} was chosen, and the pod waits at Permit for {waits or 'its binding to begin'}.",
        "It is bound once each of these plugins allows it, and goes back to the queue when one gives up.",
    )


def _in_pre_bind(state: PodState) -> tuple[str, str]:
    waits = "; ".join(f"{w.plugin}{f' ({w.message})' if w.message else ''}" for w in state.waits_for)
    return (
        f"Node {state.node} was chosen, and the pod waits in PreBind for {waits}.",
        "Look at what is to be provided: claims of volumes and devices have events of their own.",
    )


def _not_ours(named: str, state: PodState) -> tuple[str, str]:
    profiles = ", ".join(state.profiles)
    return (
        f'The pod names the scheduler "{named}", of which no profile is here.',
        f"Make it with spec.schedulerName one of: {profiles}; or start the scheduler that it names.",
    )


_HELD: Mapping[StateKind, Callable[[PodState], tuple[str, str]]] = {
    StateKind.GATED: _gated,
    StateKind.NOT_QUEUED: _not_queued,
    StateKind.WAITING_AT_PERMIT: _waiting_at_permit,
    StateKind.IN_PRE_BIND: _in_pre_bind,
}


def _pending(state: PodState, nodes: NodeVerdicts | None) -> tuple[str, str]:
    """What keeps a pod from fitting, or why it waits although it fits."""
    if state.nomination is not None and state.nomination.leaving_count:
        return _nominated(state)
    if nodes is None or not nodes.total:
        return "There are no nodes.", "Add a node."
    if nodes.feasible:
        return _fits(state, nodes)
    if nodes.refusals:
        cause = f"The pod is turned down before any node is looked at: {why(nodes.refusals)}."
        return cause, _remedy_for(nodes.refusals[0].plugin)
    if nodes.groups:
        return _turned_down(nodes), _remedy_for(nodes.groups[0].refusals[0].plugin)
    return (
        f"The pod could not be tried: {nodes.message}",
        "See the scheduler's log and the plugin that is named.",
    )


def _remedy_for(plugin: str) -> str:
    if plugin.startswith(EXTENDER):
        return f"The {plugin} decides: see its log, or ask those who run it."
    describe = f"berth plugin describe {plugin} (-n NAMESPACE on a cluster)"
    return REMEDIES.get(plugin) or f"The plugin {plugin} decides: its log, and {describe}."


def _nominated(state: PodState) -> tuple[str, str]:
    nomination = state.nomination
    assert nomination is not None, "it is nominated"
    leaving = ", ".join(nomination.leaving[:FEW])
    more = nomination.leaving_count - min(FEW, nomination.leaving_count)
    others = f" and {more} more" if more else ""
    return (
        f"Node {nomination.node} is being made free: {leaving}{others} are being deleted.",
        "It is tried again when they are gone; that takes their grace periods at most.",
    )


def _with_its_group(group: str, nodes: NodeVerdicts, last_message: str) -> tuple[str, str]:
    """Why a pod waits that fits by itself, but not together with its group."""
    alone = f"The pod by itself fits on {nodes.feasible} of {nodes.total} nodes"
    whole = f"its group {group} as a whole did not: {last_message[:MAX_MESSAGE]}"
    return f"{alone}; {whole}", _look_at(group)


def _look_at(group: str) -> str:
    return f"See what the group lacks: berth explain podgroup {group}."


def _fits(state: PodState, nodes: NodeVerdicts) -> tuple[str, str]:
    count = f"{nodes.feasible} of {nodes.total} nodes"
    match state.kind:
        case StateKind.ACTIVE:
            return f"The pod fits on {count} and is number {state.position} in the queue.", ""
        case StateKind.BACKING_OFF:
            until = f" until {state.until}" if state.until else ""
            return f"The pod fits on {count} now and backs off{until} after a failed attempt.", ""
        case _:
            by = ", ".join(state.rejected_by) or "an error"
            return (
                f"The pod fits on {count} now; its last attempt failed because of {by}.",
                "It waits for one of the events below; without any it is tried again after five minutes.",
            )


def _turned_down(nodes: NodeVerdicts) -> str:
    first, *others = nodes.groups
    if not others:
        return f"The pod fits on no node: {why(first.refusals)}."
    left = nodes.total - first.count
    rest = f"{left} other{'s' if left > 1 else ''} below"
    return f"The pod fits on no node. {first.count} of {nodes.total} nodes: {why(first.refusals)}; {rest}."


def _refusing(state: PodState, nodes: NodeVerdicts | None) -> Iterable[str]:
    """The plugins that turn the pod down, or most nodes; of one that fits, those that did when it was tried.

    An attempt that failed in PreBind has no such plugin: it may have been any of those that wait for claims.
    """
    if nodes is None or not nodes.total:
        return ()
    if nodes.feasible:
        failed = state.kind is not StateKind.ACTIVE
        return state.rejected_by or (OF_CLAIMS if failed else ())
    refusals = nodes.refusals or (nodes.groups[0].refusals if nodes.groups else ())
    return [each.plugin for each in refusals]


def _with_claims(cause: str, remedy: str, lacks: Sequence[Lacking]) -> tuple[str, str]:
    """Name the claims behind the cause, in their order; the first one's remedy is the pod's."""
    if not lacks:
        return cause, remedy
    said = [each.cause for each in lacks[:FEW] if each.cause]
    named = "".join(f" {text[0].upper()}{text[1:]}." for text in said)
    first = lacks[0].remedy
    return f"{cause}{named}", f"{first[0].upper()}{first[1:]}."


def why(refusals: Sequence[Refusal]) -> str:
    """Who turns the pod down and in which words."""
    return "; ".join(f"{', '.join(each.reasons)} ({each.plugin})" for each in refusals)
