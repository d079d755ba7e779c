"""What became of pods, from one watch of them all."""

import asyncio
from collections import defaultdict
from contextlib import suppress

import msgspec

from berth.client.errors import RetryError
from berth.client.resources import PODS
from berth.client.watching.watch import WatchSource, pages, watch_lines
from tests.scheduler_perf.errors import PerfError

WATCH_SECONDS = 3_600
LOOK_SECONDS = 0.5


class Metadata(msgspec.Struct, rename="camel", gc=False):
    """The part of a pod's metadata that is looked at."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    resource_version: str = ""


class Spec(msgspec.Struct, rename="camel", gc=False):
    """Where a pod is, and the claims that it gets from templates."""

    node_name: str = ""
    resource_claims: list[dict] = []


class Condition(msgspec.Struct, gc=False):
    """A condition of a pod."""

    type: str


class Status(msgspec.Struct, rename="camel", gc=False):
    """A pod's conditions, and the claims that were made for it."""

    conditions: list[Condition] = []
    resource_claim_statuses: list[dict] = []


class SeenPod(msgspec.Struct):
    """A pod as the watch shows it."""

    metadata: Metadata
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)

    @property
    def scheduled(self):
        """Whether it has a node."""
        return bool(self.spec.node_name)

    @property
    def attempted(self):
        """Whether it has been tried."""
        return any(condition.type == "PodScheduled" for condition in self.status.conditions)

    @property
    def claimed(self):
        """Whether all the claims that it gets from templates are made."""
        templates = [c for c in self.spec.resource_claims if "resourceClaimTemplateName" in c]
        return len(self.status.resource_claim_statuses) >= len(templates)

    def has(self, labels):
        """Whether it has these labels."""
        return all(self.metadata.labels.get(key) == value for key, value in (labels or {}).items())


class SeenEvent(msgspec.Struct):
    """An event of the watch."""

    type: str
    object: SeenPod


class PodWatch:
    """The pods there are by namespace; `followers` are called with (pod before, pod now), None for none.

    It is to be run as a task beside everything else.
    """

    def __init__(self, transport):
        self._transport = transport
        self.pods = defaultdict(dict)
        self.followers = []

    async def run(self):
        """Follow the pods without end."""
        decode = msgspec.json.Decoder(SeenEvent).decode
        listed = [page async for page in pages(self._transport, WatchSource(PODS), page_size=0)]
        version = listed[-1].metadata.resource_version
        while True:
            with suppress(RetryError):
                lines = watch_lines(self._transport, WatchSource(PODS), version, WATCH_SECONDS)
                async for batch in lines:
                    for event in map(decode, batch):
                        version = event.object.metadata.resource_version or version
                        if event.type != "BOOKMARK":
                            self._take(event)

    def _take(self, event):
        pod = event.object
        known = self.pods[pod.metadata.namespace]
        before, after = known.get(pod.metadata.name), None if event.type == "DELETED" else pod
        if after is None:
            known.pop(pod.metadata.name, None)
        else:
            known[pod.metadata.name] = after
        for follow in self.followers:
            follow(before, after)

    def selected(self, namespace, labels=None):
        """The pods of a namespace that have these labels."""
        return [pod for pod in self.pods[namespace].values() if pod.has(labels)]

    async def wait(self, namespace, count, *, check, timeout_seconds, labels=None, stage="Scheduled"):
        """Wait until so many pods of a namespace have been scheduled, attempted, or claimed.

        Raises: PerfError where it takes too long; what `check`, which is called at each look, raises.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                # Counted now and then: at each event it would cost as much as there are pods.
                while count > len(self._reached(namespace, labels, stage)):
                    check()
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            done = {pod.metadata.name for pod in self._reached(namespace, labels, stage)}
            others = [
                p.metadata.name for p in self.selected(namespace, labels) if p.metadata.name not in done
            ]
            raise PerfError(
                f"{len(done)} of {count} pods of namespace {namespace} were {stage.lower()} after "
                f"{timeout_seconds:g} s; not {namespace}/{others[0] if others else '?'}"
            ) from None

    def _reached(self, namespace, labels, stage):
        return [
            pod
            for pod in self.selected(namespace, labels)
            if pod.scheduled
            or (stage == "Attempted" and pod.attempted)
            or (stage == "Claimed" and pod.claimed)
        ]
