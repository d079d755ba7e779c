"""What a pod requests in total: containers, init containers, sidecars, overhead, pod level, resizes.

Amounts are nano units while they are added up, so that rounding happens once (berth.objects.quantity).

Source: component-helpers resource (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from berth.objects.node import Amount
from berth.objects.pods.pod import ContainerStatus, Pod
from berth.objects.pods.pod_spec import Container, PodSpec, ResourceAmounts, Resources
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.quantity import (
    MAX_INT64,
    MIN_INT64,
    NANOS,
    NANOS_PER_MILLI,
    milli,
    nanos,
    saturated,
    whole,
)
from berth.objects.resource_names import (
    CPU,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_MILLI_CPU,
    MEMORY,
    is_accounted,
    is_pod_level,
)

Nanos = dict[str, int]
Units = dict[str, int]

NON_ZERO_DEFAULTS: Mapping[str, int] = {
    CPU: DEFAULT_MILLI_CPU * NANOS_PER_MILLI,
    MEMORY: DEFAULT_MEMORY_BYTES * NANOS,
}
NO_DEFAULTS: Mapping[str, int] = {}
REMEMBERED = 1024
"""How many different requests are remembered: about as many as there are controllers in a large cluster."""
REMEMBERED_AMOUNTS = 32
"""How many amounts they may have, so that pods of odd containers do not fill the memory."""


def pod_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    by_pod: bool = False,
    pod_level: bool = True,
    defaults: Mapping[str, int] = NO_DEFAULTS,
) -> Nanos:
    """The pod's effective requests, by resource name, in nano units.

    `use_status` takes a resize under way into account: `by_pod` with the largest sum over containers, else
    with each container's largest. `pod_level` lets `spec.resources` replace sums, and `defaults` fills in
    what a container has no key for.
    """
    if not (use_status and _may_resize(pod)):
        return _spec_requests(pod.spec, pod_level=pod_level, defaults=defaults)
    statuses, infeasible = _statuses(pod), _resize_infeasible(pod)

    def of(container: Container) -> Nanos:
        return _container(container, statuses.get(container.name), defaults, infeasible=infeasible)

    if by_pod:
        total = _largest_of_pod(pod, statuses, defaults, infeasible=infeasible)
    else:
        total = _over_containers(pod.spec, of)
    if pod_level and pod.spec.resources is not None:
        total.update(_pod_level(pod, infeasible=infeasible))
    _add(total, _parsed(pod.spec.overhead))
    return total


def _spec_requests(spec: PodSpec, *, pod_level: bool, defaults: Mapping[str, int]) -> Nanos:
    """What the spec asks for by itself."""
    total = _over_containers(spec, lambda container: _container(container, None, defaults, infeasible=False))
    if pod_level and spec.resources is not None:
        total.update(_pod_level_of(spec))
    _add(total, _parsed(spec.overhead))
    return total


def pod_limits(pod: Pod) -> Nanos:
    """The pod's effective limits, by resource name, in nano units; overhead counts where there is a limit."""
    total = _over_containers(pod.spec, lambda container: _parsed(container.resources.limits))
    if pod.spec.resources is not None:
        wanted = _parsed(pod.spec.resources.limits)
        total.update({name: amount for name, amount in wanted.items() if is_pod_level(name)})
    overhead = _parsed(pod.spec.overhead)
    _add(total, {name: amount for name, amount in overhead.items() if total.get(name)})
    return total


def fit_requests(pod: Pod) -> Units:
    """What the pod has to find free: cpu in milli, the rest in whole units. Not to be written to."""
    return pod.template.derived(_fit_requests)


def _fit_requests(template: PodTemplate) -> Units:
    return in_units(_spec_requests(template.spec, pod_level=True, defaults=NO_DEFAULTS))


def scored_requests(pod: Pod) -> Units:
    """The same as scoring sees it: defaults filled in, without pod-level requests. Not to be written to.

    Leaving out the pod level is upstream's behaviour, although nodes count it for placed pods.
    """
    return pod.template.derived(_scored_requests)


def _scored_requests(template: PodTemplate) -> Units:
    spec = template.spec
    if spec.resources is None and not _lack_basics(spec):
        return template.derived(_fit_requests)
    if spec.resources is None and all(each.restartable for each in spec.init_containers):
        return _with_missing(template.derived(_fit_requests), (*spec.containers, *spec.init_containers))
    return in_units(_spec_requests(spec, pod_level=False, defaults=NON_ZERO_DEFAULTS))


def _with_missing(asked: Units, containers: Sequence[Container]) -> Units:
    """Requests of containers that run side by side, with the defaults of what some of them leave out."""
    total = dict(asked)
    for name, default in ((CPU, DEFAULT_MILLI_CPU), (MEMORY, DEFAULT_MEMORY_BYTES)):
        missing = len([1 for each in containers if name not in (each.resources.requests or NO_DEFAULTS)])
        if missing:
            total[name] = saturated(total.get(name, 0) + missing * default)
    return total


def accounted_requests(pod: Pod) -> Units:
    """What the pod counts for once it is on a node. Not to be written to."""
    return in_units(pod_requests(pod, use_status=True)) if _may_resize(pod) else fit_requests(pod)


def non_zero_requests(pod: Pod) -> tuple[int, int]:
    """Milli-CPU and bytes of a placed pod, with scoring's defaults for containers that ask for none."""
    return placed_requests(pod)[1]


def placed_requests(pod: Pod, *, by_pod: bool = False) -> tuple[Units, tuple[int, int]]:
    """What the pod counts for on its node, and CPU and memory with scoring's defaults (`non_zero_requests`).

    A resize under way counts as in `pod_requests`.

    Pods of one controller ask for the same: for containers alone, what that comes to is remembered.
    """
    if _is_containers_alone(pod):
        asked = tuple(tuple((each.resources.requests or {}).items()) for each in pod.spec.containers)
        if sum(map(len, asked)) <= REMEMBERED_AMOUNTS:
            requests, non_zero = _together(asked)
            return dict(requests), non_zero
    return _placed_requests(pod, by_pod=by_pod)


def _is_containers_alone(pod: Pod) -> bool:
    """Whether the pod takes what its containers ask for, all at once, and nothing else."""
    spec, status = pod.spec, pod.status
    if spec.init_containers or spec.overhead or spec.resources is not None:
        return False
    return all(each.resources is None for each in status.container_statuses)


@lru_cache(maxsize=REMEMBERED)
def _together(requests: tuple[tuple[tuple[str, Amount], ...], ...]) -> tuple[Units, tuple[int, int]]:
    containers = tuple(Container(resources=Resources(requests=dict(each))) for each in requests)
    return _placed_requests(Pod.of(spec=PodSpec(containers=containers)))


def _placed_requests(pod: Pod, *, by_pod: bool = False) -> tuple[Units, tuple[int, int]]:
    total = pod_requests(pod, use_status=True, by_pod=by_pod)
    requests = in_units(total)
    if not _defaults_are_idle(pod):
        missing = NON_ZERO_DEFAULTS
        if has_pod_level_requests(pod):
            missing = {name: amount for name, amount in NON_ZERO_DEFAULTS.items() if name not in total}
        if missing:
            total = pod_requests(pod, use_status=True, by_pod=by_pod, defaults=missing)
    return requests, (milli(total.get(CPU, 0)), whole(total.get(MEMORY, 0)))


def _defaults_are_idle(pod: Pod) -> bool:
    """Whether every container asks for CPU and memory itself, whatever becomes of a resize."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return not _lack_basics(pod.spec) and all(status.resources is None for status in statuses)


def _lack_basics(spec: PodSpec) -> bool:
    """Whether some container leaves it to defaults how much CPU or memory it counts for."""
    for container in (*spec.containers, *spec.init_containers):
        requests = container.resources.requests
        if not requests or CPU not in requests or MEMORY not in requests:
            return True
    return False


def in_units(amounts: Nanos) -> Units:
    """Amounts in the scheduler's units, without the resources that it does not account for."""
    found = {}
    for name, amount in amounts.items():
        if name == CPU:
            found[name] = milli(amount)
        elif is_accounted(name):
            # `whole` without its calls: there may be tens of thousands of names.
            units = -(-amount // NANOS)
            found[name] = units if MIN_INT64 <= units <= MAX_INT64 else saturated(units)
    return found


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether `spec.resources.requests` sets something that replaces the sum over containers."""
    resources = pod.spec.resources
    return resources is not None and any(is_pod_level(name) for name in resources.requests or ())


def _parsed(amounts: ResourceAmounts | None) -> Nanos:
    return dict(zip(amounts, map(nanos, amounts.values()), strict=True)) if amounts else {}


def _add(total: Nanos, more: Nanos) -> None:
    if not total:
        total.update(more)
        return
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Nanos, floor: Nanos) -> None:
    for name, amount in floor.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _over_containers(spec: PodSpec, of: Callable[[Container], Nanos]) -> Nanos:
    """What all containers take together, `of` saying it of one: init containers run before the others."""
    total: Nanos = {}
    for container in spec.containers:
        _add(total, of(container))
    if not spec.init_containers:
        return total
    sidecars: Nanos = {}
    peak: Nanos = {}
    for container in spec.init_containers:
        amounts = of(container)
        if container.restartable:
            _add(total, amounts)
            _add(sidecars, amounts)
        else:
            # Of what it does not ask for, there is never more in use than all sidecars together take.
            if sidecars:
                amounts = {name: amount + sidecars.get(name, 0) for name, amount in amounts.items()}
            _raise_to(peak, amounts)
    _raise_to(peak, sidecars)
    _raise_to(total, peak)
    return total


def _container(
    container: Container, status: ContainerStatus | None, defaults: Mapping[str, int], *, infeasible: bool
) -> Nanos:
    request = _parsed(container.resources.requests)
    if status is not None and status.resources is not None:
        request = _resized(request, status.resources, status.allocated_resources, infeasible=infeasible)
    return _with_defaults(request, defaults) if defaults else request


def _largest_of_pod(
    pod: Pod, statuses: Mapping[str, ContainerStatus], defaults: Mapping[str, int], *, infeasible: bool
) -> Nanos:
    """The largest of what the whole pod asks for, was allotted and has; an infeasible wish does not count.

    Source: component-helpers resource AggregateContainerRequests (Kubernetes v1.37).
    """

    def wished(container: Container) -> Nanos:
        return _with_defaults(_parsed(container.resources.requests), defaults)

    def allotted(container: Container) -> Nanos:
        status = statuses.get(container.name)
        if status is not None and status.allocated_resources is not None:
            return _with_defaults(_parsed(status.allocated_resources), defaults)
        return {} if infeasible else wished(container)

    def held(container: Container) -> Nanos:
        status = statuses.get(container.name)
        if status is not None and status.resources is not None:
            return _with_defaults(_parsed(status.resources.requests), defaults)
        return allotted(container)

    total = {} if infeasible else _over_containers(pod.spec, wished)
    own = pod.status
    if own.allocated_resources is not None and own.resources is not None:
        _raise_to(total, _parsed(own.allocated_resources))
        _raise_to(total, _parsed(own.resources.requests))
    else:
        _raise_to(total, _over_containers(pod.spec, allotted))
        _raise_to(total, _over_containers(pod.spec, held))
    return total


def _with_defaults(request: Nanos, defaults: Mapping[str, int]) -> Nanos:
    for name, amount in defaults.items():
        request.setdefault(name, amount)
    return request


def _resized(
    wanted: Nanos, actuated: Resources, allocated: ResourceAmounts | None, *, infeasible: bool
) -> Nanos:
    request = {} if infeasible else dict(wanted)
    for amounts in (actuated.requests, allocated):
        if amounts:
            _raise_to(request, _parsed(amounts))
    return request


def resized(
    statuses: Sequence[ContainerStatus], containers: Iterable[Container]
) -> tuple[ContainerStatus, ...]:
    """Those of the statuses that say of a container something else than its spec asks for."""
    if not statuses:
        return ()
    asked = {container.name: container.resources.requests or {} for container in containers}
    sized = [status for status in statuses if status.resources is not None]
    return tuple([status for status in sized if _holds_another(status, asked.get(status.name))])


def _holds_another(status: ContainerStatus, asked: ResourceAmounts | None) -> bool:
    held = status.resources.requests if status.resources is not None else None
    return (held or {}) != asked or status.allocated_resources not in (None, asked)


def _pod_level_of(spec: PodSpec) -> Nanos:
    wanted = _parsed(spec.resources.requests) if spec.resources else {}
    return {name: amount for name, amount in wanted.items() if is_pod_level(name)}


def _pod_level(pod: Pod, *, infeasible: bool) -> Nanos:
    wanted = _pod_level_of(pod.spec)
    if pod.status.resources is None:
        return wanted
    effective = _resized(wanted, pod.status.resources, pod.status.allocated_resources, infeasible=infeasible)
    return {name: effective.get(name, 0) for name in wanted}


def _may_resize(pod: Pod) -> bool:
    """Whether the status may say that the pod holds something else than its spec asks for."""
    status = pod.status
    return bool(status.container_statuses or status.init_container_statuses or status.resources is not None)


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    both: Iterable[ContainerStatus] = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    passing = {container.name for container in pod.spec.init_containers if not container.restartable}
    return {status.name: status for status in both if status.name not in passing}


def _resize_infeasible(pod: Pod) -> bool:
    reasons = (c.reason for c in pod.status.conditions if c.type == "PodResizePending")
    return next(reasons, "") == "Infeasible"


def scaled(name: str, amount: Amount) -> int:
    """One amount in the scheduler's unit for that resource."""
    return milli(nanos(amount)) if name == CPU else whole(nanos(amount))
