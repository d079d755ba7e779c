"""A running sandbox: the store, the API over it, fake kubelets, controllers, and a socket on loopback."""

import asyncio
import ssl
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from berth.config.releases.release import DEFAULT, Release
from berth.sandbox.access import EVERYBODY, AccessGate, RequestAccess
from berth.sandbox.access.default_roles import default_roles
from berth.sandbox.access.delegation import trusted
from berth.sandbox.access.identity import Tokens
from berth.sandbox.access.rbac import Rbac
from berth.sandbox.aggregation import FrontProxy
from berth.sandbox.api import SandboxApi
from berth.sandbox.attributes import RequestAttributes, SandboxUser
from berth.sandbox.containers import Images, PodRuns
from berth.sandbox.controllers.deployments import Deployments
from berth.sandbox.controllers.garbage_collection import GarbageCollector
from berth.sandbox.controllers.kubelet import Kubelets
from berth.sandbox.controllers.namespaces import NamespaceLifecycle
from berth.sandbox.errors import ApiError, SandboxError
from berth.sandbox.free_port import LOOPBACK
from berth.sandbox.http import HttpConnection
from berth.sandbox.journal import StoreJournal
from berth.sandbox.kubeconfig import kubeconfig_text, write_kubeconfig
from berth.sandbox.meta import Clock
from berth.sandbox.store import Json, SandboxStore
from berth.serving.self_signed import self_signed

HANG_UP_SECONDS: Final = 1.0
"""How long the last answers may take to be sent."""
_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITY_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class SandboxOptions(msgspec.Struct, frozen=True):
    """How to run a sandbox.

    `port` 0 takes a free one. `history_limit` is how many writes of a collection a watch may be behind before
    it has to list again. `pod_grace_seconds` is the longest that a deleted pod takes to stop. Without
    `kubelets` bound pods stay Pending. A `data_file` keeps what the sandbox holds for the
    next one. With `rbac` it serves TLS, asks for tokens, allows what roles allow. `images` are run as
    processes, which takes `rbac`. `controllers` keep deployments' pods, and collect what has lost its owner.
    """

    port: int = 0
    history_limit: int = 20_000
    pod_grace_seconds: float = 0.5
    kubelets: bool = True
    data_file: Path | None = None
    rbac: bool = False
    images: Images = msgspec.field(default_factory=Images)
    controllers: bool = False
    release: Release = DEFAULT
    """Of Kubernetes, whose API versions are served."""
    clock: Clock = time.time


class RunningSandbox:
    """A sandbox that answers; close it when done."""

    def __init__(self, options: SandboxOptions) -> None:
        self.store = SandboxStore(options.history_limit)
        self.denied: list[tuple[SandboxUser, RequestAttributes]] = []
        self._tokens = Tokens()
        self.access = self._access(options)
        self._front_proxy = FrontProxy()
        self.api = SandboxApi(
            self.store,
            options.clock,
            self.access,
            logs=self._logs,
            front_proxy=self._front_proxy,
            release=options.release,
        )
        self.url = ""
        self._options = options
        self._connections: set[HttpConnection] = set()
        self._server: asyncio.Server | None = None
        self._journal: StoreJournal | None = None
        self._kubelets: Kubelets | None = None
        self._namespaces: NamespaceLifecycle | None = None
        self._controllers: list[GarbageCollector | Deployments] = []
        self._authority = b""
        self.runs: PodRuns | None = None

    async def start(self) -> None:
        """Fill in what every cluster has, and listen.

        Raises: SandboxError when the port is taken, or the data file cannot be used.
        """
        loop = asyncio.get_running_loop()
        if self._options.data_file is not None:
            self._journal = StoreJournal.open(self._options.data_file, self.store)
            self._serve_definitions()
        certificate, key = self_signed()
        self._populate(certificate)
        tls = self._tls(certificate, key) if self._options.rbac else None
        try:
            self._server = await loop.create_server(self._connect, LOOPBACK, self._options.port, ssl=tls)
        except OSError as error:
            reason = error.strerror or str(error)
            raise SandboxError(f"cannot listen on {LOOPBACK}:{self._options.port}: {reason}") from None
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://{LOOPBACK}:{port}"
        self._namespaces = NamespaceLifecycle(self.api.rest)
        self.api.aggregation.begin()
        if self._options.kubelets:
            self.runs = self._pod_runs(port) if self._options.images else None
            grace = self._options.pod_grace_seconds
            self._kubelets = Kubelets(self.api.rest, grace_seconds=grace, runs=self.runs)
        if self._options.controllers:
            self._controllers = [Deployments(self.api.rest), GarbageCollector(self.api.rest)]

    def _logs(self, key: str, container: str) -> str:
        return "" if self.runs is None else self.runs.log(key, container)

    async def close(self) -> None:
        """Close all connections and stop."""
        for part in (*self._controllers, self._kubelets, self._namespaces, self.api.aggregation):
            if part is not None:
                part.close()
        if self.runs is not None:
            await self.runs.close()
        if self._server is not None:
            await self._hang_up(self._server)
        if self._journal is not None:
            self._journal.close()

    async def _hang_up(self, server: asyncio.Server) -> None:
        """Before Python 3.12 a server does not wait for its connections; from then on it would for ever."""
        server.close()
        for connection in tuple(self._connections):
            connection.close()
        try:
            async with asyncio.timeout(HANG_UP_SECONDS):
                await server.wait_closed()
        except TimeoutError:
            for connection in tuple(self._connections):
                connection.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def load(self, documents: Iterable[Json]) -> int:
        """Create objects as a file holds them, status and all; existing ones are left alone.

        Returns how many were created.
        Raises: SandboxError with the object's name when one is turned down.
        """
        return sum(self._load_one(document) for document in documents)

    def kubeconfig(self) -> str:
        """Give a kubeconfig that reaches this sandbox, as text."""
        token = self._tokens.administrator if self._options.rbac else ""
        return kubeconfig_text(self.url, authority=self._authority, token=token)

    def kubeconfig_for(self, user: SandboxUser) -> str:
        """Give a kubeconfig with which other programs reach this sandbox, as text."""
        return kubeconfig_text(self.url, authority=self._authority, token=self.access.issue(user))

    def write_kubeconfig(self, path: Path) -> None:
        """Write a kubeconfig that reaches this sandbox.

        Raises: SandboxError when the file cannot be written.
        """
        write_kubeconfig(path, self.kubeconfig())

    def _access(self, options: SandboxOptions) -> RequestAccess:
        if options.rbac:
            return AccessGate(
                self._tokens, Rbac(self.store), lambda user, asked: self.denied.append((user, asked))
            )
        if options.images:
            raise SandboxError(
                "images are run with tokens of service accounts: add --authorization-mode=RBAC"
            )
        return EVERYBODY

    def _tls(self, authority: bytes, key: bytes) -> ssl.SSLContext:
        self._authority = authority
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with tempfile.TemporaryDirectory(prefix="berth-sandbox-") as folder:
            certificate, private = Path(folder, "tls.crt"), Path(folder, "tls.key")
            certificate.write_bytes(authority)
            private.write_bytes(key)
            context.load_cert_chain(certificate, private)
        return context

    def _pod_runs(self, port: int) -> PodRuns:
        return PodRuns(
            self.api.rest,
            self._options.images,
            self.access,
            address=(LOOPBACK, port),
            authority=self._authority,
        )

    def _connect(self) -> HttpConnection:
        return HttpConnection(self.api.handle, self._connections)

    def _serve_definitions(self) -> None:
        """Serve the custom resources that earlier runs defined."""
        definitions = self.api.catalogue.by_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        assert definitions is not None
        for entry in self.store.collection(definitions.store_name).entries():
            self.api.definitions.changed(definitions, entry)

    def _populate(self, authority: bytes) -> None:
        self.load(
            {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}} for name in _NAMESPACES
        )
        if self._options.rbac:
            self.load(default_roles())
        group = "scheduling.k8s.io/v1"
        for name, value in _PRIORITY_CLASSES.items():
            self.load(
                [{"kind": "PriorityClass", "apiVersion": group, "metadata": {"name": name}, "value": value}]
            )
        self.load([trusted(authority, self._front_proxy.issued.authority)])

    def _load_one(self, document: Json) -> int:
        kind, version = str(document.get("kind")), str(document.get("apiVersion"))
        metadata: dict[str, Any] = document.get("metadata") or {}
        resource = self.api.catalogue.by_kind(version, kind)
        if resource is None:
            raise SandboxError(f'no resource of kind "{kind}" in version "{version}" is served')
        namespace = metadata.get("namespace") or "default"
        if resource.namespaced:
            self._ensure_namespace(namespace)
        fresh = {
            key: value for key, value in metadata.items() if key not in ("resourceVersion", "managedFields")
        }
        try:
            entry = self.api.rest.create(
                resource, namespace, {**document, "metadata": fresh}, keep_status=True
            )
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return 0
            raise SandboxError(error.message) from None
        self.api.definitions.changed(resource, entry)
        return 1

    def _ensure_namespace(self, name: str) -> None:
        if self.store.collection("namespaces").get(name) is None:
            self.load([{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}])


async def serve(options: SandboxOptions | None = None) -> RunningSandbox:
    """Start a sandbox in this event loop; it listens when this returns.

    Raises: SandboxError when the port is taken.
    """
    sandbox = RunningSandbox(options or SandboxOptions())
    await sandbox.start()
    return sandbox
