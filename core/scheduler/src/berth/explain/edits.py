"""Changes of a pod that would get it past one plugin on one node: a patch, and the pod after it.

Each is only a guess: the engine tries it before it is shown. Indices in patches hold for a patch that
is applied in order, one edit after the other.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from berth.objects.node import Amount, Node
from berth.objects.node_selector import NodeAffinity, NodeSelector, NodeSelectorTerm
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import fit_requests, scaled
from berth.objects.pods.pod_spec import Affinity, Container, PodAffinity, Resources
from berth.objects.quantity import NANOS, InvalidQuantityError, as_binary
from berth.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from berth.objects.taint import Taint, TaintEffect, Toleration
from berth.snapshot.snapshot import Snapshot

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HARD = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)
MANAGED = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Taints that say what is wrong with a node: no pod is advised to tolerate them."""
MEBIBYTE = 2**20
MAX_OF_A_KIND = 8
MAX_OF_A_REASON = 2048
LEFT = re.compile(r"\bat most ([0-9][0-9A-Za-z.]{0,31}) of ([A-Za-z0-9][A-Za-z0-9._/-]{0,300}[A-Za-z0-9])")
"""How a plugin's reason says what is left of a resource."""

replace = msgspec.structs.replace


class Edit(NamedTuple):
    """One change of the pod; of two of a kind, the one with the higher rank is tried first."""

    kind: str
    sentence: str
    patch: tuple[Mapping[str, Any], ...]
    pod: Pod
    rank: int = 0


Editor = Callable[[Pod, Snapshot, int], Iterator[Edit]]
"""(pod, nodes, row) -> what might get the pod past the plugin on that node, the smallest change first."""


def _of_spec(pod: Pod, **changes: Any) -> Pod:
    return pod.with_spec(replace(pod.spec, **changes))


def _op(op: str, path: str, value: Any = None) -> Mapping[str, Any]:
    return {"op": op, "path": path} if op == "remove" else {"op": op, "path": path, "value": value}


def escaped(key: str) -> str:
    """The key as a part of a patch's path. Source: RFC 6901."""
    return key.replace("~", "~0").replace("/", "~1")


# NodeResourcesFit: what is free on the node is the most that the pod may request.


def smaller_requests(pod: Pod, nodes: Snapshot, row: int) -> Iterator[Edit]:
    """Request no more than is free there, of all resources that are short."""
    short = _short(pod, nodes, row)
    yield from _no_more_than(pod, short, int(share_free(pod, nodes, row) * 1e6))


def _no_more_than(pod: Pod, most: Mapping[str, int], rank: int = 0) -> Iterator[Edit]:
    patch: list[Mapping[str, Any]] = []
    parts, changed = [], pod
    for name, free in sorted(most.items()):
        amount = _rounded(name, free)
        capped = None if amount <= 0 else _capped(changed, name, amount)
        if capped is None:
            return
        changed, operations = capped
        patch += operations
        parts.append(f"{_written(name, amount)} of {name} (now {_written(name, fit_requests(pod)[name])})")
    if parts:
        yield Edit("Requests", f"request at most {' and '.join(parts)}", tuple(patch), changed, rank)


def no_more_than_said(pod: Pod, reasons: Iterable[str]) -> Iterator[Edit]:
    """Request no more than a plugin's reason says is left, as in `at most 1500m of cpu`."""
    yield from _no_more_than(pod, _left(pod, reasons))


def more_than_said(pod: Pod, reasons: Iterable[str]) -> str:
    """How much more would have to be left than a plugin's reason says; empty where it says nothing of it."""
    wanted = fit_requests(pod)
    return " and ".join(
        f"{_written(name, wanted[name] - left)} more of {name} (it leaves {_written(name, left)})"
        for name, left in sorted(_left(pod, reasons).items())
    )


def _left(pod: Pod, reasons: Iterable[str]) -> dict[str, int]:
    """What is left, as a plugin's reason has it, of each resource of which the pod wants more."""
    wanted, most = fit_requests(pod), dict[str, int]()
    for reason in reasons:
        for amount, name in islice(LEFT.findall(reason[:MAX_OF_A_REASON]), MAX_OF_A_KIND):
            with suppress(InvalidQuantityError):
                left = scaled(name, amount)
                if wanted.get(name, 0) > left:
                    most[name] = min(left, most.get(name, left))
    return most


def share_free(pod: Pod, nodes: Snapshot, row: int) -> float:
    """How much of what the pod requests is free on the node, of the resource that is shortest there."""
    wanted = fit_requests(pod)
    return min((free / wanted[name] for name, free in _short(pod, nodes, row).items()), default=0.0)


def _short(pod: Pod, nodes: Snapshot, row: int) -> dict[str, int]:
    """What is free on the node of each resource of which the pod wants more."""
    found = {}
    for name, wanted in fit_requests(pod).items():
        offered = nodes.offered(name)
        free = (0 if offered is None else int(offered[row])) - int(nodes.held(name)[row])
        if wanted > max(free, 0):
            found[name] = free
    return found


def _rounded(name: str, amount: int) -> int:
    """The amount in whole mebibytes where it is bytes of some size."""
    if name in (MEMORY, EPHEMERAL_STORAGE) and amount >= MEBIBYTE:
        return amount - amount % MEBIBYTE
    return amount


def _written(name: str, amount: int) -> str:
    if name == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    return as_binary(amount * NANOS) if name in (MEMORY, EPHEMERAL_STORAGE) else str(amount)


def _capped(pod: Pod, name: str, most: int) -> tuple[Pod, list[Mapping[str, Any]]] | None:
    """The pod with its largest requests cut until all together are no more; None where that does not do."""
    spec = pod.spec
    if spec.resources is not None and name in (spec.resources.requests or {}):
        path = f"/spec/resources/requests/{escaped(name)}"
        resources = _with_request(spec.resources, name, _written(name, most))
        return _of_spec(pod, resources=resources), [_op("replace", path, _written(name, most))]
    excess = fit_requests(pod)[name] - most
    patch: list[Mapping[str, Any]] = []
    containers = list(spec.containers)
    for i in sorted(range(len(containers)), key=lambda i: -_asked(containers[i], name)):
        own = _asked(containers[i], name)
        if excess <= 0 or own <= 0:
            break
        patch += _resource_patch(containers[i], f"/spec/containers/{i}/resources", name, max(own - excess, 0))
        containers[i] = _smaller(containers[i], name, _written(name, max(own - excess, 0)))
        excess -= own
    changed = _of_spec(pod, containers=tuple(containers))
    if fit_requests(changed).get(name, 0) <= most:
        return changed, patch
    # An init container runs alone: it may ask for all there is, where those that restart leave it that.
    first = list(spec.init_containers)
    for i, container in enumerate(first):
        if _asked(container, name) > most:
            patch += _resource_patch(container, f"/spec/initContainers/{i}/resources", name, most)
            first[i] = _smaller(container, name, _written(name, most))
    changed = _of_spec(changed, init_containers=tuple(first))
    return (changed, patch) if fit_requests(changed).get(name, 0) <= most else None


def _asked(container: Container, name: str) -> int:
    requests = container.resources.requests or {}
    return scaled(name, requests[name]) if name in requests else 0


def _smaller(container: Container, name: str, amount: str) -> Container:
    resources = _with_request(container.resources, name, amount)
    if "/" in name and name in (resources.limits or {}):
        resources = replace(resources, limits={**(resources.limits or {}), name: amount})
    return replace(container, resources=resources)


def _resource_patch(container: Container, path: str, name: str, most: int) -> Iterator[Mapping[str, Any]]:
    amount = _written(name, most)
    yield _op("replace", f"{path}/requests/{escaped(name)}", amount)
    if "/" in name and name in (container.resources.limits or {}):
        # Of extended resources no more may be used than is requested.
        yield _op("replace", f"{path}/limits/{escaped(name)}", amount)


def _with_request(resources: Resources, name: str, amount: Amount) -> Resources:
    return replace(resources, requests={**(resources.requests or {}), name: amount})


# TaintToleration


def more_tolerations(pod: Pod, nodes: Snapshot, row: int) -> Iterator[Edit]:
    """Tolerate the node's taints, unless they say that something is wrong with it."""
    taints = untolerated(pod, nodes.nodes[row])
    if not taints or any(taint.key.startswith(MANAGED) for taint in taints):
        return
    added = tuple(
        Toleration(key=t.key, operator="Equal" if t.value else "Exists", value=t.value, effect=t.effect)
        for t in taints
    )
    written = [
        {"key": t.key, "operator": t.operator, "effect": t.effect, **({"value": t.value} if t.value else {})}
        for t in added
    ]
    patch: tuple[Mapping[str, Any], ...]
    if pod.spec.tolerations:
        patch = tuple(_op("add", "/spec/tolerations/-", each) for each in written)
    else:
        patch = (_op("add", "/spec/tolerations", written),)
    shown = " and ".join(
        f"{t.key}={t.value}:{t.effect}" if t.value else f"{t.key}:{t.effect}" for t in taints
    )
    changed = _of_spec(pod, tolerations=(*pod.spec.tolerations, *added))
    yield Edit("Toleration", f"tolerate the taint {shown}", patch, changed)


def untolerated(pod: Pod, node: Node) -> list[Taint]:
    """The taints that keep the pod off the node."""
    hard = [taint for taint in node.spec.taints if taint.effect in HARD]
    return [taint for taint in hard if not any(t.tolerates(taint) for t in pod.spec.tolerations)]


# NodeAffinity


def wider_selection(pod: Pod, nodes: Snapshot, row: int) -> Iterator[Edit]:
    """Leave out what the pod demands of labels and this node lacks: a key, an expression, or all of it."""
    labels = nodes.nodes[row].metadata.labels
    selector = pod.spec.node_selector or {}
    missing = [key for key, value in selector.items() if labels.get(key) != value]
    for key in missing[:MAX_OF_A_KIND]:
        left = {k: v for k, v in selector.items() if k != key}
        patch = (_op("remove", f"/spec/nodeSelector/{escaped(key)}"),)
        sentence = f"leave {key}={selector[key]} out of the nodeSelector"
        yield Edit("NodeSelector", sentence, patch, _of_spec(pod, node_selector=left))
    if len(missing) > 1:
        left = {k: v for k, v in selector.items() if k not in missing}
        every = tuple(_op("remove", f"/spec/nodeSelector/{escaped(key)}") for key in missing)
        sentence = f"leave {', '.join(missing)} out of the nodeSelector"
        yield Edit("NodeSelector", sentence, every, _of_spec(pod, node_selector=left))
    yield from _wider_affinity(pod)


def _wider_affinity(pod: Pod) -> Iterator[Edit]:
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    if affinity is None or required is None:
        return
    path = f"/spec/affinity/nodeAffinity/{REQUIRED}"
    tried = 0
    for i, term in enumerate(required.node_selector_terms):
        expressions = term.match_expressions
        for j, expression in enumerate(expressions if len(expressions) > 1 else ()):
            tried += 1
            if tried > MAX_OF_A_KIND:
                break
            smaller = replace(term, match_expressions=expressions[:j] + expressions[j + 1 :])
            terms = _exchanged(required.node_selector_terms, i, smaller)
            shown = f"{expression.key} {expression.operator} {','.join(expression.values or ())}".strip()
            yield Edit(
                "NodeAffinity",
                f"leave the expression {shown!r} out of the required node affinity",
                (_op("remove", f"{path}/nodeSelectorTerms/{i}/matchExpressions/{j}"),),
                _with_node_affinity(pod, affinity, NodeSelector(node_selector_terms=terms)),
            )
    changed = _with_node_affinity(pod, affinity, None)
    yield Edit("NodeAffinity", "leave the required node affinity out", (_op("remove", path),), changed)


def _exchanged(
    terms: tuple[NodeSelectorTerm, ...], i: int, term: NodeSelectorTerm
) -> tuple[NodeSelectorTerm, ...]:
    return (*terms[:i], term, *terms[i + 1 :])


def _with_node_affinity(pod: Pod, affinity: Affinity, required: NodeSelector | None) -> Pod:
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(), required_during_scheduling_ignored_during_execution=required
    )
    return _of_spec(pod, affinity=replace(affinity, node_affinity=node_affinity))


# PodTopologySpread


def looser_spreading(pod: Pod, nodes: Snapshot, row: int) -> Iterator[Edit]:
    """Let one constraint be a preference, or all of them."""
    del nodes, row
    constraints = pod.spec.topology_spread_constraints
    hard = [i for i, c in enumerate(constraints) if c.when_unsatisfiable in ("", "DoNotSchedule")]
    choices = [[i] for i in hard[:MAX_OF_A_KIND]] + ([hard] if len(hard) > 1 else [])
    for chosen in choices:
        loosened = tuple(
            replace(c, when_unsatisfiable="ScheduleAnyway") if i in chosen else c
            for i, c in enumerate(constraints)
        )
        keys = ", ".join(dict.fromkeys(constraints[i].topology_key for i in chosen))
        paths = (f"/spec/topologySpreadConstraints/{i}/whenUnsatisfiable" for i in chosen)
        patch = tuple(_op("replace", path, "ScheduleAnyway") for path in paths)
        sentence = f"spread over {keys} with whenUnsatisfiable: ScheduleAnyway"
        yield Edit("TopologySpread", sentence, patch, _of_spec(pod, topology_spread_constraints=loosened))


# InterPodAffinity


def fewer_pod_terms(pod: Pod, nodes: Snapshot, row: int) -> Iterator[Edit]:
    """Leave one required term of pod affinity or anti-affinity out, or all of a kind."""
    del nodes, row
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for field, written, kind in (
        ("pod_anti_affinity", "podAntiAffinity", "PodAntiAffinity"),
        ("pod_affinity", "podAffinity", "PodAffinity"),
    ):
        held: PodAffinity | None = getattr(affinity, field)
        terms = held.required if held is not None else ()
        path = f"/spec/affinity/{written}/{REQUIRED}"
        for i, term in enumerate(terms[:MAX_OF_A_KIND]):
            left = _with_terms(pod, affinity, field, terms[:i] + terms[i + 1 :])
            sentence = f"leave the required {written} term over {term.topology_key} out"
            yield Edit(kind, sentence, (_op("remove", f"{path}/{i}"),), left)
        if len(terms) > 1:
            sentence = f"leave all required {written} terms out"
            yield Edit(kind, sentence, (_op("remove", path),), _with_terms(pod, affinity, field, ()))


def _with_terms(pod: Pod, affinity: Affinity, field: str, terms: tuple[Any, ...]) -> Pod:
    held = getattr(affinity, field) or PodAffinity()
    changed = replace(held, required_during_scheduling_ignored_during_execution=terms)
    return _of_spec(pod, affinity=replace(affinity, **{field: changed}))


# NodePorts


def fewer_host_ports(pod: Pod, nodes: Snapshot, row: int) -> Iterator[Edit]:
    """Ask for no port of the node."""
    del nodes, row
    patch, ports, containers = [], [], []
    for i, container in enumerate(pod.spec.containers):
        for j, port in enumerate(container.ports):
            if port.host_port:
                patch.append(_op("remove", f"/spec/containers/{i}/ports/{j}/hostPort"))
                ports.append(str(port.host_port))
        containers.append(replace(container, ports=tuple(replace(p, host_port=0) for p in container.ports)))
    if patch and not pod.spec.host_network:
        sentence = f"do without host port {', '.join(ports[:MAX_OF_A_KIND])}"
        yield Edit("HostPort", sentence, tuple(patch), _of_spec(pod, containers=tuple(containers)))


EDITORS: Mapping[str, Editor] = {
    "NodeResourcesFit": smaller_requests,
    "TaintToleration": more_tolerations,
    "NodeAffinity": wider_selection,
    "PodTopologySpread": looser_spreading,
    "InterPodAffinity": fewer_pod_terms,
    "NodePorts": fewer_host_ports,
}
"""By the plugin that turns the node down."""
