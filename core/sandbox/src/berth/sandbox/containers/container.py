"""One container: a process, started again when it ends.

    waiting ─▶ running (started, ready: what probes say) ─▶ terminated ─▶ waiting: CrashLoopBackOff ─▶ running

Source: pkg/kubelet/kuberuntime and pkg/kubelet/status (v1.36).
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from berth.framework.pacing import Backoff, Pauses
from berth.sandbox.child_process import tied
from berth.sandbox.containers.probes import Prober
from berth.sandbox.meta import new_uid
from berth.sandbox.store import Json

_LONGEST_PAUSE = 10.0
_STABLE_SECONDS = 10.0


class Launch(msgspec.Struct, frozen=True):
    """What to start, and where."""

    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    address: str
    translate: Callable[[str], str]


@dataclass
class FakeContainer:
    """A container and how it fares; `changed` is called when its status did."""

    spec: Json
    changed: Callable[[], None]
    now: Callable[[], str]
    restart_seconds: float
    state: Json = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last_state: Json = field(default_factory=dict)
    restarts: int = 0
    ready: bool = False
    started: bool = False
    identity: str = ""

    def __post_init__(self) -> None:
        self.running = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    def wait_for(self, reason: str, message: str) -> None:
        """Say why it does not run."""
        state = {"waiting": {"reason": reason, "message": message}}
        if state != self.state:
            self.state, self.ready, self.started = state, False, False
            self.changed()

    async def keep(self, launch: Launch) -> None:
        """Run it, again and again, until it is stopped."""
        pauses = Pauses(Backoff(self.restart_seconds, _LONGEST_PAUSE))
        pauses.next()
        loop = asyncio.get_running_loop()
        while not self._stopping:
            begun = loop.time()
            await self.once(launch)
            if self._stopping:
                return
            self.last_state = self.state
            if loop.time() - begun > _STABLE_SECONDS:
                pauses.reset()
            pause = pauses.next()
            text = f"back-off {pause:g}s restarting failed container={self.spec['name']}"
            self.wait_for("CrashLoopBackOff", text)
            await asyncio.sleep(pause)
            self.restarts += 1

    async def once(self, launch: Launch) -> int:
        """Run it to its end; its exit status."""
        began = self.now()
        try:
            process = await self._spawn(launch)
        except OSError as error:
            text = f"exec {launch.command[0]}: {error.strerror or error}"
            self.state = {"terminated": {"exitCode": 128, "reason": "StartError", "message": text}}
            self.changed()
            return 128
        self._process = process
        if self._stopping:
            _kill(process)
        self.identity = f"sandbox://{new_uid()}"
        self.state = {"running": {"startedAt": began}}
        self.started = "startupProbe" not in self.spec
        self.ready = self.started and "readinessProbe" not in self.spec
        self.changed()
        probing = asyncio.create_task(self._probe(launch))
        if self.started:
            self.running.set()
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            _kill(process)
            await process.wait()
            raise
        finally:
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)
            self._process = None
        self._ended(code, began)
        return code

    async def stop(self, grace_seconds: float) -> None:
        """Ask it to end, and end it if it does not."""
        self._stopping = True
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_seconds):
                await process.wait()
        except TimeoutError:
            self.kill()
            await process.wait()

    def kill(self) -> None:
        """End it at once, with everything that it started."""
        self._stopping = True
        if self._process is not None:
            _kill(self._process)

    @property
    def pid(self) -> int | None:
        """The process that runs, if one does."""
        return self._process.pid if self._process is not None else None

    async def _spawn(self, launch: Launch) -> asyncio.subprocess.Process:
        with launch.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *tied(launch.command, launch.environment, launch.log.parent),
                env=dict(launch.environment),
                cwd=launch.log.parent,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def _probe(self, launch: Launch) -> None:
        def prober(name: str, on_verdict: Callable[[bool], None]) -> Prober | None:
            probe = self.spec.get(name)
            return Prober(probe, self.spec, launch.address, on_verdict, launch.translate) if probe else None

        startup = prober("startupProbe", self._on_started)
        if startup is not None:
            await startup.run(until_good=True)
        parts = [prober("readinessProbe", self._on_readiness), prober("livenessProbe", self._on_liveness)]
        async with asyncio.TaskGroup() as tasks:
            for part in parts:
                if part is not None:
                    tasks.create_task(part.run())

    def _on_started(self, good: bool) -> None:
        if not good:
            self._restart()
            return
        self.started = True
        self.ready = "readinessProbe" not in self.spec
        self.running.set()
        self.changed()

    def _on_readiness(self, good: bool) -> None:
        if good is not self.ready:
            self.ready = good
            self.changed()

    def _on_liveness(self, good: bool) -> None:
        if not good:
            self._restart()

    def _restart(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    def _ended(self, code: int, began: str) -> None:
        reason = "Completed" if code == 0 else "Error"
        exit_code = 128 - code if code < 0 else code
        done = {"exitCode": exit_code, "reason": reason, "startedAt": began, "finishedAt": self.now()}
        self.state = {"terminated": {**done, "containerID": self.identity}}
        self.ready = self.started = False
        self.changed()

    def status(self) -> Json:
        """Give it as a pod's status shows it."""
        image = self.spec.get("image", "")
        return {
            "name": self.spec["name"],
            "state": self.state,
            "lastState": self.last_state,
            "ready": self.ready,
            "restartCount": self.restarts,
            "image": image,
            "imageID": image,
            "containerID": self.identity,
            "started": self.started,
        }


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
