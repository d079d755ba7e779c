"""All pods that really run: started, given changed ConfigMaps, stopped.

Called by: the fake kubelet, which leaves to it the pods whose images are known.
"""

import asyncio
import hashlib
import random
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from berth.sandbox.access import RequestAccess
from berth.sandbox.access.identity import service_account
from berth.sandbox.containers.folders import PodFolder, Sources
from berth.sandbox.containers.images import Images
from berth.sandbox.containers.pod_run import NodeServices, PodRun
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.rest import RestStorage
from berth.sandbox.store import Json

_VOLUMES = ("configmaps", "secrets")


class PodRuns:
    """The pods at work. `authority` is the certificate that clients trust, in PEM."""

    def __init__(
        self,
        rest: RestStorage,
        images: Images,
        access: RequestAccess,
        *,
        address: tuple[str, int],
        authority: bytes,
        restart_seconds: float = 0.5,
    ) -> None:
        pods = rest.catalogue.get("", "v1", "pods")
        events = rest.catalogue.get("", "v1", "events")
        assert pods is not None
        assert events is not None
        self._pods: ServedResource = pods
        self._events: ServedResource = events
        self._rest = rest
        self._images = images
        self._access = access
        self._authority = authority
        self._restart_seconds = restart_seconds
        self._service = {"KUBERNETES_SERVICE_HOST": address[0], "KUBERNETES_SERVICE_PORT": str(address[1])}
        self._folder = tempfile.TemporaryDirectory(prefix="bs-")
        self._runs: dict[str, PodRun] = {}
        self._count = 0
        # Sandboxes beside each other shall not give out the same addresses.
        self._network = random.getrandbits(14)
        self._loop = asyncio.get_running_loop()
        self._reporting: set[str] = set()
        self._refreshing = False
        self._endings: dict[str, asyncio.Task[None]] = {}
        self._unsubscribe = [rest.store.collection(name).subscribe(self._refresh_soon) for name in _VOLUMES]

    def wants(self, pod: Json) -> bool:
        """Say whether the pod is one of those that really run."""
        return self._images.runs(pod)

    def has(self, key: str, uid: str) -> bool:
        """Say whether that pod is at work."""
        run = self._runs.get(key)
        return run is not None and run.uid == uid

    def pid(self, key: str, container: str) -> int | None:
        """Give the process of a pod's container."""
        run = self._runs.get(key)
        return run.pid(container) if run is not None else None

    def log(self, key: str, container: str) -> str:
        """Give what a container, or the first one, has written; empty where nothing is known."""
        run = self._runs.get(key)
        if run is None:
            return ""
        name = container or run.pod["spec"]["containers"][0]["name"]
        found = next((one for one in run.folder.containers() if one["name"] == name), None)
        file = run.folder.log(found) if found else None
        return file.read_text(errors="replace") if file is not None and file.exists() else ""

    def start(self, key: str, pod: Json, host: str) -> None:
        """Put a bound pod to work."""
        if key in self._runs:
            return
        self._count += 1
        pod["status"] |= {"hostIP": host, "podIP": _address(self._network, self._count)}
        folder = PodFolder(Path(self._folder.name, str(self._count)), pod, self._sources(pod))
        read = self._reader(pod)
        services = NodeServices(
            self._images, read, self._service, self._rest.now, self._restart_seconds, self._complain
        )
        run = PodRun(pod, folder, services, lambda: self._report_soon(key))
        self._runs[key] = run
        run.start()
        self._report_soon(key)

    def stop(self, key: str, grace_seconds: float, done: Callable[[], None]) -> None:
        """End a pod, then call `done`; asking again changes nothing."""
        run = self._runs.get(key)
        if run is None or run.uid in self._endings:
            return

        async def stop() -> None:
            await run.stop(grace_seconds)
            self._runs.pop(key, None)
            done()

        self._end(run, stop())

    def forget(self, key: str, uid: str) -> None:
        """End at once what is left of a pod that is gone."""
        run = self._runs.get(key)
        if run is not None and run.uid == uid and uid not in self._endings:
            self._runs.pop(key)
            self._end(run, run.kill())

    async def close(self) -> None:
        """End all pods at once."""
        for stop in self._unsubscribe:
            stop()
        killed = [run.kill() for run in self._runs.values()]
        await asyncio.gather(*killed, *self._endings.values(), return_exceptions=True)
        self._runs.clear()
        self._folder.cleanup()

    def _end(self, run: PodRun, work: Coroutine[Any, Any, None]) -> None:
        task = self._endings[run.uid] = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._endings.pop(run.uid, None))

    def _complain(self, pod: Json, reason: str, message: str) -> None:
        """Write a kubelet's event, once for each thing that it says of a pod."""
        metadata, now = pod["metadata"], self._rest.now()
        digest = hashlib.sha256(f"{metadata['uid']}{reason}{message}".encode()).hexdigest()[:16]
        about = {name: metadata[name] for name in ("namespace", "name", "uid")}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{digest}", "namespace": metadata["namespace"]},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", **about},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        with suppress(ApiError):  # it is there already
            self._rest.create(self._events, metadata["namespace"], event)

    def _sources(self, pod: Json) -> Sources:
        namespace, account = pod["metadata"]["namespace"], pod["spec"].get("serviceAccountName") or "default"
        token = self._access.issue(service_account(namespace, account))
        files = {"token": token.encode(), "ca.crt": self._authority, "namespace": namespace.encode()}
        return Sources(self._reader(pod), files)

    def _reader(self, pod: Json) -> Callable[[str, str], Json | None]:
        namespace = pod["metadata"]["namespace"]

        def read(plural: str, name: str) -> Json | None:
            entry = self._rest.store.collection(plural).get(f"{namespace}/{name}")
            return entry.decode() if entry is not None else None

        return read

    def _report_soon(self, key: str) -> None:
        if key not in self._reporting:
            self._reporting.add(key)
            self._loop.call_soon(self._report, key)

    def _report(self, key: str) -> None:
        self._reporting.discard(key)
        run = self._runs.get(key)
        if run is None:
            return
        namespace, _, name = key.partition("/")

        def report(document: Json) -> None:
            if document["metadata"]["uid"] == run.uid:
                known = {"hostIP": run.pod["status"]["hostIP"], "podIP": run.address}
                lists = {"hostIPs": [{"ip": known["hostIP"]}], "podIPs": [{"ip": run.address}]}
                document["status"] = run.status({**document.get("status", {}), **known, **lists})

        try:
            self._rest.change(self._pods, namespace, name, report)
        except ApiError:  # the pod went in between
            return

    def _refresh_soon(self) -> None:
        if not self._refreshing:
            self._refreshing = True
            self._loop.call_soon(self._refresh)

    def _refresh(self) -> None:
        self._refreshing = False
        for run in self._runs.values():
            run.refresh()


def _address(network: int, number: int) -> str:
    """Give the address of the n-th pod, out of a small network of 127.64.0.0/10: this machine."""
    return f"127.{64 + (network >> 8)}.{network & 255}.{1 + (number - 1) % 254}"
