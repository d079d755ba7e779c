"""Plugins that come and go as sockets in a directory, followed by a scheduler at work."""

import asyncio
import logging
import socket
import tempfile
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from berth.config import load
from berth.config.out_of_tree.plugin_list import read_plugin_list
from berth.config.out_of_tree.sidecars import catalogue_of
from berth.demo.surface import Surface
from berth.out_of_tree.lifecycle.wanted import AttachError
from berth.sandbox import SandboxOptions, serve
from berth.scheduler.process import run
from berth.scheduler.process_options import ProcessOptions, Serving
from berth.scheduler.sidecars import plugin_directory
from berth.scheduler.sidecars.plugin_directory import GONE_LOOKS, RETRY_LOOKS, PluginDirectory
from tests.failures.reporting import reports
from tests.sockets import listens
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler.test_plugins_at_work import PROFILE, SchedulerAtWork, roomy
from tests.unit.scheduler_at_work import CONFIGURATION, eventually, node

HEAD = "apiVersion: berth.dev/v1alpha1\nkind: PluginList\n"
ENTRY = f"plugins: [{{name: colours, profiles: [{PROFILE}], timeout: 300ms}}]\n"


def defaults(folder):
    """A directory whose plugins join the profile."""
    return f"directory: {{path: {folder}, profiles: [{PROFILE}], timeout: 300ms}}\n"


class AtWork(SchedulerAtWork):
    """A cluster whose plugins serve sockets called after them."""

    core = None
    """The scheduler's."""

    def filters(self):
        """The plugins that have a say in the profile."""
        return [plugin.name for plugin in self.core.profiles.frameworks[PROFILE].plugins.filter]

    async def joined(self):
        """Wait until the plugin has."""
        await eventually(lambda: "colours" in self.filters())

    async def gone(self):
        """Wait until it has not."""
        await eventually(lambda: "colours" not in self.filters())

    async def serve(self, colour, name="colours"):
        """Start a plugin."""
        (self.folder / f"{name}.sock").unlink(missing_ok=True)
        await self.start(name, colour)

    async def end(self, name="colours"):
        """End a plugin in order: its socket goes away."""
        await self.kill(name)
        (self.folder / f"{name}.sock").unlink(missing_ok=True)


@asynccontextmanager
async def following(text, monkeypatch, *, in_file=False):
    """A scheduler that follows the list of that text; `{folder}` in it is where sockets appear."""
    monkeypatch.setattr(plugin_directory, "LOOK_SECONDS", 0.02)
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder, surface = Path(name), Surface.free()
        listed = read_plugin_list(HEAD + text.replace("{folder}", name), "list")
        if in_file:
            (folder / "list.yaml").write_text(HEAD + text.replace("{folder}", name))
        async with await serve(SandboxOptions()) as sandbox:
            sandbox.load([roomy(node(colour, colour=colour)) for colour in ("red", "blue")])
            sandbox.write_kubeconfig(folder / "config")
            ready, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
            settings = ProcessOptions(
                load(
                    CONFIGURATION.format(kubeconfig=folder / "config"),
                    out_of_tree=catalogue_of(listed.plugins),
                ),
                sidecars=listed.plugins,
                directory=listed.directory,
                plugins_file=str(folder / "list.yaml") if in_file else "",
                seed=1,
                serving=Serving("127.0.0.1", surface.port, always_allowed=("/*",)),
            )
            process = asyncio.create_task(run(settings, stop, on_ready=ready.set_result))
            cluster = AtWork(sandbox, folder, surface.port)
            try:
                await eventually(lambda: process.done() or ready.done())
                assert not process.done(), process.result()
                cluster.core = ready.result()
                yield cluster
                stop.set()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await process
            finally:
                process.cancel()
                await asyncio.gather(process, return_exceptions=True)
                for version in list(cluster.processes):
                    await cluster.kill(version)


async def test_a_plugin_that_no_entry_names(monkeypatch):
    """It joins when its socket appears; a crash loses it, which fails closed; its going away detaches it."""
    monkeypatch.setattr(plugin_directory, "GONE_LOOKS", 3)
    async with following(defaults("{folder}"), monkeypatch) as cluster:
        assert {"red", "blue"} == await cluster.bound(cluster.create(20))
        await cluster.serve("red")
        await cluster.joined()
        assert {"red"} == await cluster.bound(cluster.create(5))
        await cluster.kill("colours")
        assert not listens(cluster.folder / "colours.sock")
        waiting = cluster.create(5)
        await eventually(lambda: cluster.notes("FailedScheduling"))
        assert [None] * 5 == cluster.nodes_of(waiting)
        (cluster.folder / "colours.sock").unlink()
        await cluster.gone()

        assert {"red", "blue"} == await cluster.bound([*waiting, *cluster.create(20)])


async def test_a_plugin_that_an_entry_names(monkeypatch):
    """It is counted on before it appears and after it went away: without it none of its pods is bound."""
    monkeypatch.setattr(plugin_directory, "GONE_LOOKS", 3)
    async with following(ENTRY + "directory: {path: '{folder}'}\n", monkeypatch) as cluster:
        early = cluster.create(3)
        await eventually(lambda: cluster.notes("FailedScheduling"))
        assert [None] * 3 == cluster.nodes_of(early)
        await cluster.serve("red")
        assert {"red"} == await cluster.bound(early)
        await cluster.end()
        late = cluster.create(3)
        await eventually(lambda: len(cluster.notes("FailedScheduling")) > 3)
        assert "colours" in await cluster.berth("list")
        assert [None] * 3 == cluster.nodes_of(late)
        await cluster.serve("blue")

        assert {"blue"} == await cluster.bound(late)


async def test_the_list_changes(monkeypatch):
    """A directory is followed once the list names it; what is detached stays so until its socket is new."""
    async with following("plugins: []\n", monkeypatch, in_file=True) as cluster:
        await cluster.serve("red")
        (cluster.folder / "list.yaml").write_text(HEAD + defaults(cluster.folder))
        await cluster.joined()
        await cluster.berth("detach", "colours")
        assert {"red", "blue"} == await cluster.bound(cluster.create(30))
        assert "colours" not in cluster.filters()
        await cluster.end()
        await cluster.serve("blue")
        await cluster.joined()

        assert {"blue"} == await cluster.bound(cluster.create(5))


class Attaching:
    """Stands for the host's: notes what it is asked for, refuses plugins called `bad`."""

    def __init__(self):
        self.there, self.asked, self.connected = {}, [], set()

    def has(self, name):
        return name in self.there

    def ready(self, name):
        return name in self.connected

    async def attach(self, wanted):
        self.asked.append(wanted.spec.name)
        if wanted.spec.name == "bad":
            raise AttachError("bad is not ready")
        self.there[wanted.spec.name] = wanted

    async def detach(self, name):
        self.asked.append(f"-{name}")
        del self.there[name]


class Followed:
    """A directory with sockets that this process serves."""

    def __init__(self, folder, text, stack):
        self.folder, self.stack, self.attaching = folder, stack, Attaching()
        self.list = read_plugin_list(HEAD + text, "list")
        listed = {spec.name: spec for spec in self.list.plugins}
        self.directory = PluginDirectory(self.list.directory, listed, self.attaching, self.keep)

    async def keep(self):
        """There is nothing to keep."""

    def serve(self, name, mode=0o600):
        """A socket of that name."""
        server = self.stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        path = self.folder / f"{name}.sock"
        server.bind(str(path))
        path.chmod(mode)
        server.listen(100)

    async def after(self, looks=1):
        """What was asked for in so many looks."""
        self.attaching.asked.clear()
        for _ in range(looks):
            await self.directory.look()
        return list(self.attaching.asked)


@pytest.fixture
def followed():
    with tempfile.TemporaryDirectory(prefix="berth-") as name, ExitStack() as stack:
        yield lambda text=None: Followed(Path(name), text or defaults(name), stack)


@reports("socket-refused", log="`directory of plugins`, once, with socket, problem and remedy")
async def test_what_is_no_plugin(followed, caplog):
    """Names that no plugin has, sockets that others may write to and files are logged once and left alone."""
    here = followed()
    here.serve("NodeName")
    here.serve("open", mode=0o666)
    here.serve(".hidden")
    (here.folder / "file.sock").write_text("")
    (here.folder / "dangling.sock").symlink_to(here.folder / "nowhere")
    with caplog.at_level(logging.WARNING):
        assert [] == await here.after(looks=5)

    complaints = [record.getMessage() for record in caplog.records]
    assert 2 == len(complaints)
    assert all(line.startswith(f"directory of plugins path={here.folder} plugin=") for line in complaints)
    assert "is an in-tree plugin; choose another name: call the socket after its plugin" in complaints[0]
    assert "others may write to" in complaints[1]


async def test_no_profiles(followed, caplog):
    """Where neither entry nor directory gives profiles, nothing is attached."""
    here = followed()
    here.directory.use(read_plugin_list(f"{HEAD}directory: {{path: {here.folder}}}", "list").directory)
    here.serve("lonely")
    with caplog.at_level(logging.WARNING):
        assert [] == await here.after()
    assert "no entry of the list gives it profiles, and neither does the directory" in caplog.text


async def test_an_entry_outside_the_directory(followed, caplog):
    """A plugin whose entry says another address is not the one in the directory."""
    here = followed("plugins: [{name: a, address: 'localhost:1', profiles: [p]}]\ndirectory: {path: /x}")
    here.directory.use(read_plugin_list(HEAD + defaults(here.folder), "list").directory)
    here.serve("a")
    with caplog.at_level(logging.WARNING):
        assert [] == await here.after()
    assert "its entry of the list says localhost:1" in caplog.text


@reports("directory-entry-fails", log="`plugin not attached`, with the cause; tried again after some looks")
async def test_refused_and_tried_again(followed, caplog):
    """A plugin that does not get ready is left alone for a while, unless its socket is another one."""
    here = followed()
    here.serve("bad")
    assert ["bad"] == await here.after(looks=RETRY_LOOKS + 1)
    assert ["bad"] == await here.after()
    (here.folder / "bad.sock").rename(here.folder / "kept")  # so that the next has another number
    here.serve("bad")
    assert ["bad"] == await here.after(looks=3)
    assert 3 == caplog.text.count("plugin not attached plugin=bad err=bad is not ready")


@reports("socket-gone", log="`plugin detached, its socket went away and no entry names it`")
async def test_away_and_back(followed, caplog):
    """A plugin that no entry names may be away for a while, and for as long as it is asked all the same."""
    here = followed()
    here.serve("a")
    assert ["a"] == await here.after(looks=2)
    (here.folder / "a.sock").rename(here.folder / "kept")
    here.attaching.connected.add("a")
    assert [] == await here.after(looks=2 * GONE_LOOKS)
    here.attaching.connected.clear()
    assert [] == await here.after(looks=GONE_LOOKS - 1)
    here.serve("a")
    assert [] == await here.after()
    (here.folder / "a.sock").unlink()
    assert [] == await here.after(looks=GONE_LOOKS - 1)
    assert ["-a"] == await here.after()
    assert [] == await here.after(looks=3)
    assert ["plugin detached, its socket went away and no entry names it plugin=a"] == caplog.messages


async def test_an_entry_is_taken_out(followed):
    """What the list detached does not come back by itself, but with another socket it does."""
    here = followed()
    here.attaching.there["a"] = "as the list says"
    here.serve("a")
    await here.after()
    del here.attaching.there["a"]
    assert [] == await here.after(looks=2)
    (here.folder / "a.sock").rename(here.folder / "kept")
    here.serve("a")
    assert ["a"] == await here.after(looks=2)


async def test_attached_by_hand(followed):
    """What a request attached is not detached because its socket is away."""
    here = followed()
    here.attaching.there["a"] = "by hand"
    here.serve("a")
    await here.after()
    (here.folder / "a.sock").unlink()

    assert [] == await here.after(looks=2 * GONE_LOOKS)


@reports(
    "directory-away",
    log="`directory of plugins`, once: `can't be read`, with the system's words; attached plugins stay",
)
async def test_a_directory_that_cannot_be_read(followed, caplog):
    """It is not an empty one."""
    here = followed()
    here.serve("a")
    await here.after()
    here.directory.use(read_plugin_list(HEAD + defaults("/nowhere/at/all"), "list").directory)
    with caplog.at_level(logging.WARNING):
        assert [] == await here.after(looks=2 * GONE_LOOKS)
    assert 1 == caplog.text.count("directory of plugins path=/nowhere/at/all")
    assert 1 == caplog.text.count("can't be read: No such file or directory")


async def test_no_directory(followed):
    """A list may name none."""
    here = followed()
    here.serve("a")
    here.directory.use(None)

    assert [] == await here.after()


@reports("not-detached", log="`plugin not detached`, with the cause")
async def test_a_plugin_that_goes_and_stays_attached(followed, caplog):
    """What keeps it from being detached is logged."""
    here = followed()
    here.serve("a")
    await here.after(looks=2)
    (here.folder / "a.sock").unlink()
    del here.attaching.there["a"]
    here.attaching.has = lambda _: True
    await here.after(looks=GONE_LOOKS)

    assert "plugin not detached plugin=a err='a'" in caplog.text
