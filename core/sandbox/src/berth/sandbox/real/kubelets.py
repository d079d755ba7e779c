"""Fake kubelets beside a real API server: they watch pods, and write through the API what a kubelet would."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from berth.client.api import STRATEGIC_PATCH, Api
from berth.client.errors import ClientError
from berth.client.resources import NODES, PODS
from berth.client.transport import Transport
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.sandbox import meta
from berth.sandbox.controllers.kubelet import internal_address, pod_ip, run_seconds, started, terminate
from berth.sandbox.store import Json

_LOG: Final = logging.getLogger(__name__)
_FINISHED: Final = ("Succeeded", "Failed")


class RemoteKubelets:
    """Runs bound pods, and lets deleted ones go, until it is cancelled."""

    def __init__(self, transport: Transport, *, grace_seconds: float) -> None:
        self._api = Api(transport)
        self._grace_seconds = grace_seconds
        self._hosts: dict[str, str] = {}
        self._pods = Reflector[Json](transport, WatchSource(PODS), msgspec.json.decode, _Listener(self._look))
        self._nodes = Reflector[Json](
            transport, WatchSource(NODES), msgspec.json.decode, _Listener(self._host)
        )
        # By pod and what is being done to it, so that one event more does not do it twice.
        self._doing: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._addresses = 0

    async def run(self) -> None:
        """Watch nodes and pods, and act."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._nodes.run())
                await self._nodes.synced.wait()
                group.create_task(self._pods.run())
        finally:
            for task in self._doing.values():
                task.cancel()
            await asyncio.gather(*self._doing.values(), return_exceptions=True)

    def _host(self, node: Json) -> None:
        self._hosts[node["metadata"]["name"]] = internal_address(node)

    def _look(self, pod: Json) -> None:
        metadata, phase = pod["metadata"], pod.get("status", {}).get("phase")
        if not pod["spec"].get("nodeName"):
            return
        if metadata.get("deletionTimestamp"):
            self._do("stop", pod, self._stop)
        elif phase == "Pending":
            self._do("start", pod, self._start)
        elif phase == "Running" and run_seconds(pod) is not None:
            self._do("finish", pod, self._finish)

    def _do(self, what: str, pod: Json, act: Callable[[Json], Awaitable[None]]) -> None:
        doing = (pod["metadata"]["uid"], what)
        if doing not in self._doing:
            task = asyncio.get_running_loop().create_task(self._try(act, pod))
            self._doing[doing] = task
            task.add_done_callback(lambda _: self._doing.pop(doing, None))

    async def _try(self, act: Callable[[Json], Awaitable[None]], pod: Json) -> None:
        try:
            await act(pod)
        except ClientError as error:
            # The pod's next event tries again; most often it has gone in between.
            _LOG.info("kubelet's write failed pod=%s err=%s", pod["metadata"]["name"], error)

    async def _start(self, pod: Json) -> None:
        self._addresses += 1
        host = self._hosts.get(pod["spec"]["nodeName"], internal_address(None))
        started(pod, host, pod_ip(self._addresses), meta.timestamp(time.time()))
        await self._write_status(pod)

    async def _finish(self, pod: Json) -> None:
        await asyncio.sleep(run_seconds(pod) or 0.0)
        terminate(pod, meta.timestamp(time.time()))
        pod["status"]["phase"] = _FINISHED[0]
        await self._write_status(pod)

    async def _stop(self, pod: Json) -> None:
        metadata = pod["metadata"]
        await asyncio.sleep(min(self._grace_seconds, metadata.get("deletionGracePeriodSeconds") or 0))
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        body = json.dumps({"kind": "DeleteOptions", "apiVersion": "v1", **options}).encode()
        await self._api.delete(PODS, metadata["namespace"], metadata["name"], body)

    async def _write_status(self, pod: Json) -> None:
        metadata = pod["metadata"]
        # With the UID, so that another pod of that name is left alone.
        body = {"metadata": {"uid": metadata["uid"]}, "status": pod["status"]}
        await self._api.patch(
            PODS,
            metadata["namespace"],
            metadata["name"],
            json.dumps(body).encode(),
            content_type=STRATEGIC_PATCH,
            subresource="status",
        )


class _Listener:
    """Reports every object as it is now."""

    def __init__(self, look: Callable[[Json], None]) -> None:
        self._look = look

    def on_add(self, obj: Json) -> None:
        """Tell."""
        self._look(obj)

    def on_update(self, old: Json, new: Json) -> None:
        """Tell."""
        del old
        self._look(new)

    def on_delete(self, obj: Any) -> None:
        """A pod that has gone needs nothing more."""

    def on_synced(self) -> None:
        """Kubelets don't wait for one another."""
