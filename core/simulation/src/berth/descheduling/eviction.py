"""Carrying a plan out through the Eviction API: one pod after the other, as slowly as is asked for.

    move --> pods evicted before it are gone --> same pod, same node? --> Eviction --> evicted
                                                       |                     |
                                                       +--> skipped          +--> refused (429: a budget)

A move counts on those before it, so each waits until the pods evicted before have left. A budget that refuses
one pod is asked about no other; the rest is left to the next plan.

Source: pkg/descheduler/evictions/evictions.go evictPod (descheduler v0.36).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from berth.client.api import Api, Retry
from berth.client.errors import ClientError, NotFoundError, RejectedError, ThrottledError
from berth.client.resources import PODS
from berth.client.wire import bounded, encode
from berth.descheduling.plan import API_VERSION, DeschedulePlan, Move
from berth.framework.pacing import Backoff
from berth.objects.pods.pod_decoding import decode_pod

REQUESTED_BY: Final = "berth"
LOOK_SECONDS: Final = 1.0
ONCE: Final = Retry(1, Backoff(0.0), lambda _: False)

Sleep = Callable[[float], Awaitable[None]]


class MoveResult(StrEnum):
    """What became of a move."""

    EVICTED = "Evicted"
    SKIPPED = "Skipped"
    REFUSED = "Refused"


class FinishedMove(msgspec.Struct, rename="camel", frozen=True):
    """A move, and what became of it."""

    pod: str
    node: str
    strategy: str
    result: MoveResult
    message: str = ""


class PlanEvictions(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """What became of a plan."""

    api_version: str = API_VERSION
    kind: str = "DeschedulingEvictions"
    evictions: list[FinishedMove]

    @property
    def any_refused(self) -> bool:
        """Whether a move was not made although the pod was as it was."""
        return any(each.result is MoveResult.REFUSED for each in self.evictions)


@dataclass(slots=True)
class Evicting:
    """Carries plans out. Units: seconds; `patience_seconds` is how long pods may take to leave their node."""

    api: Api
    max_per_minute: float
    sleep: Sleep
    patience_seconds: float = 300.0
    grace_period_seconds: int | None = None
    done: list[FinishedMove] = field(default_factory=list)
    _leaving: list[Move] = field(default_factory=list)
    _spent: set[str] = field(default_factory=set)
    """Budgets that have refused, and groups that have been broken off."""

    async def carry_out(self, plan: DeschedulePlan) -> list[FinishedMove]:
        """Make the moves in their order; what became of each. Raises: ClientError where none can be made."""
        for move in plan.moves:
            result, message = await self._one(move)
            if result is not MoveResult.EVICTED:
                self._spent.update(filter(None, [move.group]))
            self.done.append(FinishedMove(move.pod, move.from_, move.strategy, result, message))
        return self.done

    async def _one(self, move: Move) -> tuple[MoveResult, str]:
        spent = sorted({*move.budgets, move.group} & self._spent)
        if spent:
            return MoveResult.REFUSED, f"another eviction of {spent[0]} was not made"
        still = await self._left()
        if still:
            return MoveResult.REFUSED, f"{still} is still leaving its node"
        changed = await self._changed(move)
        if changed:
            return MoveResult.SKIPPED, changed
        return await self._evict(move)

    async def _left(self) -> str:
        """The pod that has not left in time, empty where all have that were evicted."""
        waited = 0.0
        while self._leaving:
            move = self._leaving[0]
            current = await self._pod(move)
            if current is None or current.uid != move.uid:
                self._leaving.pop(0)
            elif waited >= self.patience_seconds:
                return move.pod
            else:
                await self.sleep(LOOK_SECONDS)
                waited += LOOK_SECONDS
        return ""

    async def _changed(self, move: Move) -> str:
        """What is otherwise than in the plan, empty where nothing is."""
        current = await self._pod(move)
        if current is None:
            return "it is gone by now"
        if current.uid != move.uid:
            return "another pod has its name by now"
        if current.node_name != move.from_:
            return f"it is on {current.node_name or 'no node'} by now"
        return "it is being deleted already" if current.terminating else ""

    async def _pod(self, move: Move) -> Any:
        namespace, _, name = move.pod.partition("/")
        try:
            return bounded(decode_pod)(await self.api.get(PODS, namespace, name))
        except NotFoundError:
            return None

    async def _evict(self, move: Move) -> tuple[MoveResult, str]:
        namespace, _, name = move.pod.partition("/")
        if self._leaving or self.done:
            await self.sleep(60.0 / self.max_per_minute)
        body = encode(self._body(move, namespace, name))
        try:
            await self.api.call("POST", PODS.path(namespace, name, "eviction"), body, retry=ONCE)
        except NotFoundError:
            return MoveResult.SKIPPED, "it is gone by now"
        except ThrottledError as error:
            self._spent.update(move.budgets)
            return MoveResult.REFUSED, error.message
        except RejectedError as error:
            return MoveResult.REFUSED, error.message
        except ClientError as error:
            # Whether it landed is for the next plan to see.
            return MoveResult.REFUSED, str(error)
        self._leaving.append(move)
        return MoveResult.EVICTED, ""

    def _body(self, move: Move, namespace: str, name: str) -> dict[str, Any]:
        options: dict[str, Any] = {"preconditions": {"uid": move.uid}}
        if self.grace_period_seconds is not None:
            options["gracePeriodSeconds"] = self.grace_period_seconds
        reason = f"triggered by {move.profile}/{move.strategy}: {move.found}"
        return {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {"reason": reason, "requested-by": REQUESTED_BY},
            },
            "deleteOptions": options,
        }
