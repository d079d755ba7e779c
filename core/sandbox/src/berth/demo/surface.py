"""The scheduler's own HTTPS port, as the run looks at it."""

import asyncio
import ssl
import urllib.parse
import urllib.request
from http.client import HTTPException

import msgspec

from berth.demo.errors import DemoError
from berth.demo.processes import Child
from berth.demo.progress import READ, Progress, read_progress
from berth.sandbox.free_port import LOOPBACK, free_port

TIMEOUT_SECONDS = 5.0
POLL_SECONDS = 0.1


class Surface(msgspec.Struct, frozen=True):
    """Where health and metrics are served."""

    port: int

    @classmethod
    def free(cls) -> "Surface":
        """A port that is free at the moment."""
        return cls(free_port())

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://{LOOPBACK}:{self.port}"

    async def wait_ready(self, child: Child, timeout_seconds: float) -> None:
        """Wait until the scheduler says that it is ready.

        Raises: ChildFailedError, DemoError where it takes too long.
        """
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        while True:
            child.check()
            try:
                await asyncio.to_thread(self.read, "/readyz")
            except (HTTPException, OSError):
                if asyncio.get_running_loop().time() > deadline:
                    raise DemoError(f"{child.name} not ready in time (log: {child.log})") from None
                await asyncio.sleep(POLL_SECONDS)
            else:
                return

    async def progress(self) -> Progress:
        """How far the scheduler is.

        Raises: OSError, URLError among them, and HTTPException.
        """
        named = urllib.parse.urlencode([("name[]", name) for name in READ])
        return read_progress((await asyncio.to_thread(self.read, f"/metrics?{named}")).decode())

    def read(self, path: str) -> bytes:
        """What is served there. Raises: OSError, URLError among them, and HTTPException."""
        # The certificate is made by the process itself at its start, for this machine alone.
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 - loopback, certificate made on the spot
        url = f"https://{LOOPBACK}:{self.port}{path}"
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS, context=context) as answer:
            body: bytes = answer.read()
            return body
