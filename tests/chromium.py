"""A headless Chromium, driven by Chrome's DevTools protocol: pages are opened, read and photographed."""

import asyncio
import base64
import json
import os
import shutil
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest

from tests.suite import PATIENCE_SECONDS

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--ignore-certificate-errors",
    "--remote-debugging-port=0",
)


def found():
    """The browser's path; None where there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def program():
    """The browser's path; skips the test where there is none."""
    path = found()
    if path is None:
        pytest.skip(f"no browser on the PATH: install {NAMES[0]} to run this")
    return path


@asynccontextmanager
async def browser(folder):
    """A browser with a profile of its own in that folder; gives a function that opens a page."""
    # A browser that root starts refuses its own sandbox.
    flags = (*FLAGS, *(("--no-sandbox",) if os.geteuid() == 0 else ()), f"--user-data-dir={folder}")
    process = await asyncio.create_subprocess_exec(
        program(), *flags, "about:blank", stderr=asyncio.subprocess.DEVNULL, start_new_session=True
    )
    try:
        async with AsyncExitStack() as stack:
            address = await listening(process, folder / "DevToolsActivePort")
            client = await stack.enter_async_context(aiohttp.ClientSession())
            socket = await client.ws_connect(address, max_msg_size=0)
            link = Link(socket)
            reading = asyncio.create_task(link.read())
            stack.callback(reading.cancel)
            yield link.open
            await link.ask("Browser.close")
            async with asyncio.timeout(PATIENCE_SECONDS):
                await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def listening(process, file):
    """The address that the browser has written into the file, port and path."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            lines = file.read_text(encoding="utf-8").split() if file.exists() else ()
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            assert process.returncode is None, "the browser ended"
            await asyncio.sleep(0.05)


class Link:
    """The browser's end of the protocol."""

    def __init__(self, socket):
        self._socket = socket
        self._number = 0
        self._answers = {}
        self.pages = {}

    async def read(self):
        """Hand answers to those who wait for them, and what a page complains of to the page."""
        async for message in self._socket:
            said = json.loads(message.data)
            answer = self._answers.pop(said.get("id"), None)
            if answer is not None:
                answer.set_result(said)
            elif said.get("sessionId") in self.pages:
                self.pages[said["sessionId"]].note(said)

    async def ask(self, method, session=None, **parameters):
        """What comes back."""
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        asked = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(asked if session is None else {**asked, "sessionId": session})
        async with asyncio.timeout(PATIENCE_SECONDS):
            said = await answer
        assert "error" not in said, said
        return said["result"]

    async def open(self, url, *, dark=False, still=True, width=1280, height=1000, before=""):
        """A page at that address; `before` is run in it before its own scripts."""
        target = (await self.ask("Target.createTarget", url="about:blank"))["targetId"]
        session = (await self.ask("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Runtime", "Log", "Page", "Accessibility"):
            await page.ask(f"{domain}.enable")
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        await page.ask("Emulation.setEmulatedMedia", features=features)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await page.ask("Emulation.setDeviceMetricsOverride", **size)
        await page.ask("Page.addScriptToEvaluateOnNewDocument", source=before)
        await page.ask("Page.navigate", url=url)
        await page.until("document.readyState === 'complete' && location.href !== 'about:blank'")
        return page


class Page:
    """An open page; `complaints` are its errors: exceptions, console errors, blocked or failed requests."""

    def __init__(self, link, session):
        self._link = link
        self._session = session
        self.complaints = []

    def note(self, said):
        """Keep what the page complains of."""
        method, about = said["method"], said["params"]
        if method == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(about["args"])
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"])

    async def ask(self, method, **parameters):
        """What the page's part of the browser answers."""
        return await self._link.ask(method, self._session, **parameters)

    async def value(self, expression):
        """What the expression is in the page."""
        said = await self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    async def until(self, expression):
        """Wait until the expression is true in the page, and give its value."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                if found := await self.value(expression):
                    return found
                await asyncio.sleep(0.05)

    async def press(self, *keys):
        """Press keys, by their names."""
        for key in keys:
            for kind in ("rawKeyDown", "keyUp"):
                await self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    async def picture(self, path, *, whole=False):
        """Write what is seen, or the whole page, to a PNG file."""
        said = await self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(said["data"]))
