"""One pod at work: init containers one after the other, sidecars beside the rest, and the status of all.

Source: pkg/kubelet/kuberuntime/kuberuntime_container.go and KEP-753 (v1.36).
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from berth.sandbox.containers.container import FakeContainer, Launch
from berth.sandbox.containers.environment import environment, expanded
from berth.sandbox.containers.folders import ROOT_VARIABLE, MissingError, PodFolder
from berth.sandbox.containers.images import Images
from berth.sandbox.store import Json

_LOOK_AGAIN_SECONDS = 0.2
_PULL_PROBLEM = "Back-off pulling image"


class NodeServices(msgspec.Struct, frozen=True):
    """What a pod needs of its node. Units: restart_seconds, the first pause before a restart."""

    images: Images
    read: Callable[[str, str], Json | None]
    service: Mapping[str, str]
    now: Callable[[], str]
    restart_seconds: float
    complain: Callable[[Json, str, str], None]
    """Writes an event about a pod: its reason, its message."""


class PodRun:
    """The containers of one pod; `changed` is called when the status it gives did."""

    def __init__(
        self, pod: Json, folder: PodFolder, services: NodeServices, changed: Callable[[], None]
    ) -> None:
        self.pod = pod
        self.folder = folder
        self.uid: str = pod["metadata"]["uid"]
        self.address: str = pod["status"]["podIP"]
        self._services = services
        spec = pod["spec"]
        self._init = [self._container(one, changed) for one in spec.get("initContainers") or ()]
        self._main = [self._container(one, changed) for one in spec["containers"]]
        self._initialized = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run())

    async def stop(self, grace_seconds: float) -> None:
        """End containers first, then sidecars in the reverse order of their start."""
        await asyncio.gather(*(one.stop(grace_seconds) for one in self._main))
        for one in reversed(self._init):
            await one.stop(grace_seconds)
        await self._end()

    async def kill(self) -> None:
        """End everything at once."""
        for one in (*self._main, *self._init):
            one.kill()
        await self._end()

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.folder.remove()

    def pid(self, container: str) -> int | None:
        """Give the process of a container, by its name."""
        every = (*self._init, *self._main)
        return next((one.pid for one in every if one.spec["name"] == container), None)

    def refresh(self) -> None:
        """Bring mounted files up to date; what is missing now stays as it was."""
        try:
            self.folder.refresh()
        except MissingError:
            return

    def _container(self, spec: Json, changed: Callable[[], None]) -> FakeContainer:
        services = self._services
        return FakeContainer(spec, changed, services.now, services.restart_seconds)

    async def _run(self) -> None:
        await self._until_prepared()
        async with asyncio.TaskGroup() as tasks:
            for one in self._init:
                launch = await self._launch(one)
                if one.spec.get("restartPolicy") == "Always":
                    tasks.create_task(one.keep(launch))
                    await one.running.wait()
                else:
                    await self._until_done(one, launch)
            self._initialized = True
            for one in self._main:
                tasks.create_task(one.keep(await self._launch(one)))

    async def _until_done(self, container: FakeContainer, launch: Launch) -> None:
        code = await container.once(launch)
        while code:
            await asyncio.sleep(self._services.restart_seconds)
            code = await container.once(launch)

    async def _until_prepared(self) -> None:
        while True:
            try:
                self.folder.prepare()
            except MissingError as error:
                self._main[0].wait_for("ContainerCreating", str(error))
                self._services.complain(self.pod, "FailedMount", str(error))
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            else:
                return

    async def _launch(self, container: FakeContainer) -> Launch:
        """Give what to start, once the image and all it needs can be had."""
        while True:
            command = self._services.images.command(container.spec)
            if command is None:
                text = f'{_PULL_PROBLEM} "{container.spec.get("image", "")}"'
                container.wait_for("ImagePullBackOff", text)
            else:
                try:
                    return self._made(container.spec, command)
                except MissingError as error:
                    container.wait_for("CreateContainerConfigError", str(error))
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    def _made(self, spec: Json, command: tuple[str, ...]) -> Launch:
        root = str(self.folder.root(spec))

        def translate(text: str) -> str:
            return self.folder.translate(spec, text)

        extra = {**self._services.service, ROOT_VARIABLE: root}
        variables = environment(spec, self.pod, self._services.read, extra)
        variables = {name: value if name in extra else translate(value) for name, value in variables.items()}
        own = command if not spec.get("command") else (command[0], *map(translate, command[1:]))
        words = [translate(expanded(word, variables)) for word in spec.get("args") or ()]
        words = [word.replace("0.0.0.0", self.address) for word in words]  # noqa: S104 (replaced, not bound to)
        return Launch([*own, *words], variables, self.folder.log(spec), self.address, translate)

    def status(self, before: Json) -> Json:
        """Give the pod's status with what its containers do now."""
        now = self._services.now()
        ready = self._initialized and all(one.ready for one in self._main)
        ready = ready and all(one.ready for one in self._init if one.spec.get("restartPolicy") == "Always")
        facts = {
            "PodReadyToStartContainers": True,
            "Initialized": self._initialized,
            "Ready": ready,
            "ContainersReady": ready,
        }
        old = {one["type"]: one for one in before.get("conditions") or ()}
        mine = [_condition(kind, fact, old.get(kind), now) for kind, fact in facts.items()]
        others = [one for kind, one in old.items() if kind not in facts]
        status = {
            **before,
            "phase": "Running" if self._initialized else "Pending",
            "conditions": [*mine, *others],
            "containerStatuses": [one.status() for one in self._main],
        }
        status.setdefault("startTime", now)
        if self._init:
            status["initContainerStatuses"] = [one.status() for one in self._init]
        return status


def _condition(kind: str, fact: bool, old: Json | None, now: str) -> Json:
    status = "True" if fact else "False"
    since = old["lastTransitionTime"] if old and old["status"] == status else now
    made: Json = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": since}
    if not fact:
        made |= {"reason": "ContainersNotReady", "message": "containers are not ready"}
    return made
