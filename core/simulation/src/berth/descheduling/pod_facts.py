"""What strategies read of a pod and the scheduler does not: restarts, states of containers, why it failed."""

from collections.abc import Iterator
from datetime import UTC, datetime

from berth.objects.api_object import ApiObject, Int32, Int64
from berth.objects.decode import decoder


class Waiting(ApiObject, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""


class Terminated(ApiObject, frozen=True):
    """How a container ended."""

    reason: str = ""
    exit_code: Int64 = 0


class ContainerState(ApiObject, frozen=True):
    """One of the states; a container that runs has neither."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerFacts(ApiObject, frozen=True):
    """A container's restarts and state."""

    restart_count: Int32 | None = None
    state: ContainerState = ContainerState()


class PodConditionFacts(ApiObject, frozen=True):
    """A condition of the pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: datetime | None = None


class PodFacts(ApiObject, frozen=True):
    """A pod's status."""

    phase: str = ""
    reason: str = ""
    start_time: datetime | None = None
    conditions: tuple[PodConditionFacts, ...] = ()
    container_statuses: tuple[ContainerFacts, ...] = ()
    init_container_statuses: tuple[ContainerFacts, ...] = ()
    ephemeral_container_statuses: tuple[ContainerFacts, ...] = ()

    def restarts(self, *, init: bool) -> int:
        """How often containers were restarted."""
        return sum(each.restart_count or 0 for each in self.statuses(init=init))

    def statuses(self, *, init: bool, ephemeral: bool = False) -> Iterator[ContainerFacts]:
        """The statuses of these kinds of containers."""
        yield from self.container_statuses
        if init:
            yield from self.init_container_statuses
        if ephemeral:
            yield from self.ephemeral_container_statuses

    @property
    def counted(self) -> bool:
        """Whether restarts are written at all; snapshots have none."""
        return any(each.restart_count is not None for each in self.container_statuses)


class _Pod(ApiObject, frozen=True):
    status: PodFacts = PodFacts()


NO_FACTS = PodFacts()
_decode = decoder(_Pod, "Pod")


def facts_of(pod: bytes) -> PodFacts:
    """The facts of a pod's JSON. Raises: UndecodableObjectError."""
    return _decode(pod).status


def reasons(statuses: Iterator[ContainerFacts]) -> set[str]:
    """Why containers wait or ended."""
    found = set()
    for each in statuses:
        for state in (each.state.waiting, each.state.terminated):
            if state is not None and state.reason:
                found.add(state.reason)
    return found


def seconds_since(moment: datetime, now: datetime) -> float:
    """How long ago the moment was; one that names no time zone is in UTC, as all of the API server's are."""
    return (now - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))).total_seconds()


def exit_codes(statuses: Iterator[ContainerFacts]) -> set[int]:
    """How containers ended."""
    return {each.state.terminated.exit_code for each in statuses if each.state.terminated is not None}
