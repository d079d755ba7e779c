"""Probes: asked again and again until they succeed or fail often enough.

Source: pkg/kubelet/prober (v1.36). gRPC probes are not there.
"""

import asyncio
import os
import ssl
from collections.abc import Callable

from berth.sandbox.child_process import tied
from berth.sandbox.store import Json

_GOOD = range(200, 400)


class Prober:
    """One probe of one container; `on_verdict` is called with each change of its verdict."""

    def __init__(
        self,
        probe: Json,
        container: Json,
        address: str,
        on_verdict: Callable[[bool], None],
        translate: Callable[[str], str],
    ) -> None:
        self._probe = probe
        self._container = container
        self._address = address
        self._on_verdict = on_verdict
        self._translate = translate

    async def run(self, *, until_good: bool = False) -> None:
        """Ask until cancelled, or until it has succeeded."""
        probe = self._probe
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        streak, last = 0, None
        while True:
            good = await self._ask()
            streak = streak + 1 if good is last else 1
            last = good
            needed = probe.get("successThreshold", 1) if good else probe.get("failureThreshold", 3)
            if streak >= needed:
                self._on_verdict(good)
                if good and until_good:
                    return
            # A cluster asks once a period; here the first success should not take that long.
            await asyncio.sleep(
                probe.get("periodSeconds", 10) if last else min(0.2, probe.get("periodSeconds", 10))
            )

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(self._probe.get("timeoutSeconds", 1)):
                if "httpGet" in self._probe:
                    return await self._get(self._probe["httpGet"])
                if "tcpSocket" in self._probe:
                    return await self._connect(self._probe["tcpSocket"])
                if "exec" in self._probe:
                    return await self._execute(self._probe["exec"])
        except Exception:  # noqa: BLE001 - a host, port or command of any kind may stand in a pod's spec
            return False
        return False

    async def _get(self, action: Json) -> bool:
        # Imported here: it takes 0.1 s of CPU, and few sandboxes have pods with such probes.
        import aiohttp  # noqa: PLC0415 (see above)

        scheme = action.get("scheme", "HTTP").lower()
        url = (
            f"{scheme}://{action.get('host') or self._address}:{self._port(action)}{action.get('path', '/')}"
        )
        headers = {one["name"]: one["value"] for one in action.get("httpHeaders") or ()}
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers, ssl=context) as answer,
        ):
            return answer.status in _GOOD

    async def _connect(self, action: Json) -> bool:
        _, writer = await asyncio.open_connection(action.get("host") or self._address, self._port(action))
        writer.close()
        return True

    async def _execute(self, action: Json) -> bool:
        words = [self._translate(word) for word in action.get("command") or ()]
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*tied(words, os.environ), stdout=quiet, stderr=quiet)
        try:
            return await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _port(self, action: Json) -> int:
        port = action.get("port", 0)
        if isinstance(port, int):
            return port
        ports = self._container.get("ports") or ()
        return next((one["containerPort"] for one in ports if one.get("name") == port), 0)
