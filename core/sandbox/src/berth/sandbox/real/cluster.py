"""A real control plane, from its first process to its last."""

import asyncio
import secrets
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.errors import ClientError
from berth.client.transport import Transport
from berth.sandbox.child_process import ChildProcess
from berth.sandbox.errors import SandboxError
from berth.sandbox.free_port import LOOPBACK, free_port
from berth.sandbox.kubeconfig import kubeconfig_text, write_kubeconfig
from berth.sandbox.real import loading
from berth.sandbox.real.arguments import (
    Ports,
    Secrets,
    api_server_command,
    etcd_command,
    write_files,
)
from berth.sandbox.real.assets import Assets
from berth.sandbox.real.kubelets import RemoteKubelets
from berth.sandbox.store import Json

LOOK_SECONDS: Final = 0.2
# For each of the two: the end of the sandbox waits ten seconds for it, and what they hold goes anyway.
SERVER_GRACE_SECONDS: Final = 4.0
_OK: Final = 200


class RealOptions(msgspec.Struct, frozen=True):
    """How to run a real control plane; `port` 0 takes a free one. Units: seconds."""

    assets: Assets
    port: int = 0
    rbac: bool = False
    kubelets: bool = True
    pod_groups: bool = False
    api_server_flags: tuple[str, ...] = ()
    pod_grace_seconds: float = 0.5
    start_seconds: float = 90.0


class RealCluster:
    """etcd, kube-apiserver and fake kubelets; close it when done."""

    def __init__(self, options: RealOptions) -> None:
        self._options = options
        self._folder = tempfile.TemporaryDirectory(prefix="berth-sandbox-", ignore_cleanup_errors=True)
        self._processes: list[ChildProcess] = []
        self._ports = Ports(free_port(), free_port(), options.port or free_port())
        self._secrets: Secrets = write_files(self._path, secrets.token_urlsafe(24))
        self._transport: Transport | None = None
        self._kubelets: asyncio.Task[None] | None = None
        self.url = f"https://{LOOPBACK}:{self._ports.api_server}"

    @property
    def _path(self) -> Path:
        return Path(self._folder.name)

    async def start(self) -> None:
        """Start both and wait until the API server is ready.

        Raises: SandboxError with the last words of the one that ended, or when it takes too long.
        """
        options, folder = self._options, self._path
        await self._begin(etcd_command(options.assets, folder, self._ports))
        command = api_server_command(
            options.assets,
            folder,
            self._ports,
            rbac=options.rbac,
            pod_groups=options.pod_groups,
            flags=options.api_server_flags,
        )
        await self._begin(command)
        kubeconfig = folder / "kubeconfig"
        self.write_kubeconfig(kubeconfig)
        self._transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)))
        await self._wait_ready(self._transport)
        if options.kubelets:
            kubelets = RemoteKubelets(self._transport, grace_seconds=options.pod_grace_seconds)
            self._kubelets = asyncio.create_task(kubelets.run())

    async def _begin(self, command: list[str]) -> None:
        name = Path(command[0]).name
        log = self._path / f"{name}.log"
        # An interrupt from the terminal is for the sandbox, which ends both in their order.
        try:
            child = await ChildProcess.start(name, command, log, own_session=True)
        except OSError as error:
            raise SandboxError(f"cannot start {command[0]}: {error.strerror}") from None
        self._processes.append(child)

    async def _wait_ready(self, transport: Transport) -> None:
        try:
            async with asyncio.timeout(self._options.start_seconds):
                while not await self._is_ready(transport):  # noqa: ASYNC110 (it is another process that gets ready)
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            said = "; ".join(f"{each.name}: {each.last_words()}" for each in self._processes)
            raise SandboxError(
                f"the API server was not ready after {self._options.start_seconds:g} s ({said})"
            ) from None

    async def _is_ready(self, transport: Transport) -> bool:
        self._check()
        try:
            return (await transport.request("GET", "/readyz", timeout_seconds=5.0)).status == _OK
        except ClientError:
            return False

    async def load(self, documents: Iterable[Json]) -> int:
        """Create objects through the API; gives how many were created.

        Raises: SandboxError with the object's name when one is turned down.
        """
        assert self._transport is not None
        return await loading.load(Api(self._transport), documents)

    def write_kubeconfig(self, path: Path) -> None:
        """Write a kubeconfig that reaches this cluster as its administrator.

        Raises: SandboxError when the file cannot be written.
        """
        text = kubeconfig_text(self.url, authority=self._secrets.certificate, token=self._secrets.token)
        write_kubeconfig(path, text)

    async def failed(self) -> None:
        """Wait until a process ends by itself. Raises: SandboxError with its last words."""
        waits = [asyncio.ensure_future(each.wait()) for each in self._processes]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        self._check()

    def _check(self) -> None:
        for each in self._processes:
            if each.exit_code is not None:
                raise SandboxError(f"{each.name} ended with exit code {each.exit_code}: {each.last_words()}")

    async def close(self) -> None:
        """End the kubelets, then the API server, then what it writes to."""
        if self._kubelets is not None:
            self._kubelets.cancel()
            with suppress(asyncio.CancelledError):
                await self._kubelets
        if self._transport is not None:
            await self._transport.aclose()
        for process in reversed(self._processes):
            await process.stop(SERVER_GRACE_SECONDS)
        self._folder.cleanup()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def serve_real(options: RealOptions) -> RealCluster:
    """Start a real control plane; it is ready when this returns.

    Raises: SandboxError when a process ends, or it takes too long.
    """
    cluster = RealCluster(options)
    try:
        await cluster.start()
    except BaseException:
        await cluster.close()
        raise
    return cluster
