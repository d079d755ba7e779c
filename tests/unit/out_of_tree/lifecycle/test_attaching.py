"""Plugins that come, are replaced and leave while pods are being scheduled, in a real scheduler core."""

import asyncio
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import msgspec
import numpy as np
import pytest

from berth.cache.cache import Cache
from berth.config.duration import Duration
from berth.config.out_of_tree.sidecars import Accepted, SidecarSpec
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.evaluation.points.filtering import run_filters
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.runtime import Framework, ProfilePlugins
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree import versions
from berth.out_of_tree.connections import connection as connection_module
from berth.out_of_tree.connections.breaker import FAILURES_IN_A_ROW
from berth.out_of_tree.connections.connection import LATE_CALLS
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.lifecycle import attaching
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.out_of_tree.lifecycle.wanted import AttachError, DesiredPlugin
from berth.recordings.calls.recording import Extent
from berth.snapshot.snapshot import Snapshot
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.testing.handles import make_handle
from berth_sdk import ArgumentError, Plugin
from berth_sdk import testing as documents
from berth_sdk.serving import Server
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS
from tests.unit.out_of_tree.scripted import PROFILE, a_queue, cycle, no_watch, until

OTHER = "other"


class Colours(Plugin):
    """Takes nodes of one colour; notes who was reserved and given back."""

    name = "colours"
    node_local = True

    def __init__(self, version):
        self.version = version
        self.colour = ""
        self.held = []
        self.profiles = []

    def configure(self, arguments, profile):
        if arguments.get("colour") == "none":
            raise ArgumentError("colour: there is no such colour")
        self.colour = arguments.get("colour", "")
        self.profiles.append(profile)

    def profile_removed(self, profile):
        self.profiles.remove(profile)

    def filter(self, pod, node):
        del pod
        return None if node.labels.get("colour", "") == self.colour else "another colour"

    def reserve(self, pod, node):
        self.held.append((pod.name, node.name))

    def unreserve(self, key, node_name):
        self.held.remove((key.name, node_name))


class Harness:
    """Two profiles without plugins, a host, and what attaches plugins to them."""

    def __init__(self, tasks, own=MappingProxyType({})):
        self.cache, self.snapshot, self.rewired = Cache(), Snapshot(), []
        profiles = [
            SimpleNamespace(scheduler_name=profile, points={}, args={"colours": args})
            for profile, args in own.items()
        ]
        self.host = PluginHost(
            [],
            profiles,
            cache=self.cache,
            snapshot=self.snapshot,
            answers=EquivalenceCache(self.snapshot),
            queue=a_queue({}),
            waiting_pods=[],
            sampled=lambda _: False,
            watch=no_watch,
            rewire=self.rewired.append,
        )
        decode = self.host.nodes.decoding(decoder(Node))
        for name, colour in (("n0", "red"), ("n1", "blue")):
            document = documents.make_node(name, labels={"colour": colour})
            self.cache.add_node(decode(msgspec.json.encode(document)))
        self.host.pods.decoding(decode_pod)(msgspec.json.encode(documents.make_pod("p")))
        self.cache.update_snapshot(self.snapshot)
        self.handles = {name: make_handle(self.snapshot, profile_name=name) for name in (PROFILE, OTHER)}
        self.frameworks = {name: Framework(name, ProfilePlugins()) for name in self.handles}
        self.attaching = Attaching(
            self.host, self.frameworks, self.handles, lambda work, _name: tasks.create_task(work)
        )

    def plugin(self, profile=PROFILE):
        """The plugin in that profile."""
        return self.host.plugins["colours", profile]

    def end(self, *states):
        """The attempts of these states are over."""
        for state in states:
            record = record_of(state)
            record.result = "error"
            for _, work in self.host.cycles_done(record):
                work.close()

    async def fitting(self, state=None, profile=PROFILE):
        """The nodes that the profile's filters leave."""
        state = state or cycle()
        record = record_of(state)
        attempt = Attempt(record.pod, self.snapshot, state, record)
        mask = await run_filters(
            self.frameworks[profile].plugins.filter,
            attempt,
            np.ones(len(self.snapshot), dtype=bool),
            Diagnosis(self.snapshot.names),
        )
        return [name for name, fits in zip(self.snapshot.names, mask, strict=True) if fits]


def record_of(state):
    """The attempt's record, in the profile."""
    record = state.get(CycleRecord)
    record.profile = PROFILE
    return record


@pytest.fixture
def folder():
    """A private folder with a short path."""
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        yield Path(name)


@asynccontextmanager
async def at_work(folder, *plugins, own=MappingProxyType({})):
    """A harness and these plugins, each served at a socket of its version's name.

    `own` are arguments that profiles have of their own for the plugin.
    """
    async with AsyncExitStack() as stack:
        for plugin in plugins:
            server = Server(plugin, f"unix:{folder}/{plugin.version}.sock")
            await server.start()
            stack.push_async_callback(server.stop, 0)
        async with asyncio.TaskGroup() as tasks:
            harness = Harness(tasks, own)
            yield harness
            for version in [*harness.host.versions.values(), *harness.host.others]:
                version.task.cancel()


def wanted(folder, version, *profiles, colour="red", **fields):
    address = f"unix:{folder}/{version}.sock"
    spec = SidecarSpec("colours", address, Duration(10**9), args={"colour": colour}, **fields)
    return DesiredPlugin(spec, profiles)


async def test_attach(folder):
    """A plugin joins the profiles named, and takes part from the next attempt on."""
    async with at_work(folder, Colours("v1")) as harness:
        assert ["n0", "n1"] == await harness.fitting()
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))

        assert ["n0"] == await harness.fitting()
        assert ["n0", "n1"] == await harness.fitting(profile=OTHER)
        assert [("colours", "v1", [PROFILE])] == [
            (each["name"], each["version"], each["profiles"]) for each in harness.attaching.list()
        ]
        assert PROFILE in harness.rewired


async def test_an_address_without_a_listener(folder, monkeypatch):
    """A plugin that does not get ready changes nothing."""
    monkeypatch.setattr(attaching, "READY_SECONDS", 0.5)
    async with at_work(folder) as harness:
        with pytest.raises(AttachError, match=r"not ready within 0.5 s: .*v1.sock: No such file"):
            await harness.attaching.attach(wanted(folder, "v1", PROFILE))

        assert ([], ["n0", "n1"]) == (harness.attaching.list(), await harness.fitting())
        assert [] == harness.host.others


class Without(Plugin):
    """Takes no arguments."""

    name, version = "colours", "v1"

    def filter(self, _pod, _node):
        return None


async def test_refused_arguments(folder, monkeypatch):
    """A plugin that refuses its arguments is given up at once, with its own words, and changes nothing."""
    monkeypatch.setattr(attaching, "READY_SECONDS", 3600)
    async with at_work(folder, Without()) as harness, asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(AttachError, match=r"^profile default-scheduler: colour: unknown argument"):
            await harness.attaching.attach(wanted(folder, "v1", PROFILE))

        assert ([], []) == (harness.attaching.list(), harness.host.others)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"profiles": ()}, "colours is new here: name the profiles that are to have it"),
        ({"profiles": ("missing",)}, "no profile missing; there are: default-scheduler, other"),
        ({"spec": SidecarSpec("NodeName", "h:1")}, "NodeName is an in-tree plugin: choose another name"),
    ],
)
async def test_refused(folder, changes, says):
    """What makes no sense is refused with a text that says what to do."""
    async with at_work(folder) as harness:
        asked = wanted(folder, "v1", PROFILE)
        with pytest.raises(AttachError, match=says):
            await harness.attaching.attach(
                DesiredPlugin(changes.get("spec", asked.spec), changes.get("profiles", asked.profiles))
            )


async def test_replace(folder):
    """New attempts begin with the new version; an attempt that began with the old one ends with it."""
    old, new = Colours("v1"), Colours("v2")
    async with at_work(folder, old, new) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        state = cycle()
        await harness.fitting(state)
        record = record_of(state)
        await harness.attaching.attach(wanted(folder, "v2", colour="blue"))
        assert ["n1"] == await harness.fitting(cycle(attempt=2))
        (draining,) = harness.attaching.describe("colours")["draining"]
        assert ("v1", 1) == (draining["version"], draining["attempts"])
        await harness.plugin().reserve(state, record.pod, "n0")
        assert ([("p", "n0")], []) == (old.held, new.held)
        await harness.plugin().unreserve(state, record.pod, "n0")
        harness.end(state)
        await until(lambda: not harness.host.others)

        assert [] == harness.attaching.describe("colours")["draining"]


@reports("version-cut-off", log="`plugin cut off with attempts at work`, with their number")
async def test_an_attempt_that_does_not_end_is_cut_off(folder, monkeypatch, caplog):
    """An old version is waited for only so long; the log says how many attempts lost it."""
    monkeypatch.setattr("berth.out_of_tree.versions.DRAIN_SECONDS", 0.0)
    async with at_work(folder, Colours("v1"), Colours("v2")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        await harness.fitting(cycle())
        await harness.attaching.attach(wanted(folder, "v2"))
        await until(lambda: not harness.host.others)

    assert "plugin cut off with attempts at work plugin=colours attempts=1" in caplog.text


async def test_a_version_that_is_not_there_replaces_nothing(folder, monkeypatch):
    """The old version goes on where the new one does not get ready."""
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        monkeypatch.setattr(attaching, "READY_SECONDS", 0.1)
        with pytest.raises(AttachError, match="not ready"):
            await harness.attaching.attach(wanted(folder, "v2"))

        assert ["n0"] == await harness.fitting()


async def test_reconfigure(folder):
    """Other arguments are handed over without another connection; those that are refused change nothing."""
    plugin = Colours("v1")
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        await harness.attaching.attach(wanted(folder, "v1", colour="blue"))
        assert ["n1"] == await harness.fitting()
        with pytest.raises(AttachError, match="colour: there is no such colour"):
            await harness.attaching.attach(wanted(folder, "v1", colour="none"))

        assert ["n1"] == await harness.fitting()
        assert {PROFILE: {"colour": "blue"}} == harness.attaching.describe("colours")["arguments"]
        assert harness.host.versions["colours"].connection.starts == 1


@reports("attach-refused", answer="`berth plugin attach`: the plugin's own words, exit status 2")
async def test_a_refused_profile_changes_nothing(folder):
    """A further profile whose arguments are refused does not join, and later ones are not kept from it."""
    plugin = Picky("v1")
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        with pytest.raises(AttachError, match="profile other: colour: not in this profile"):
            await harness.attaching.attach(wanted(folder, "v1", OTHER, colour="blue"))
        refused = harness.attaching.describe("colours")
        fitting = await harness.fitting()
        await harness.attaching.attach(wanted(folder, "v1", OTHER))

        assert {PROFILE: {"colour": "red"}} == refused["arguments"]
        assert [PROFILE] == refused["profiles"]
        assert ["n0"] == fitting
        assert {PROFILE: {"colour": "red"}, OTHER: {"colour": "red"}} == harness.attaching.describe(
            "colours"
        )["arguments"]


class Picky(Colours):
    """Takes one colour alone in the other profile."""

    def configure(self, arguments, profile):
        if profile == OTHER and arguments["colour"] != "red":
            raise ArgumentError("colour: not in this profile")
        super().configure(arguments, profile)


async def test_arguments_of_a_profile_stand_before_an_entry(folder):
    """Arguments that lose against pluginConfig are said to."""
    async with at_work(folder, Colours("v1"), own={PROFILE: {"colour": "blue"}}) as harness:
        notes = await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        same = await harness.attaching.attach(wanted(folder, "v1", colour="blue"))

        assert ["n1"] == await harness.fitting()
    assert ["profile default-scheduler has arguments of its own for colours in its pluginConfig"] == [
        note.partition(", which")[0] for note in notes
    ]
    assert [] == list(same)


async def test_unanswered_arguments_change_nothing(folder, monkeypatch):
    """A plugin that does not answer to other arguments is greeted anew, with those before."""
    plugin, silent = Colours("v1"), asyncio.Event()
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        connection = harness.host.versions["colours"].connection

        async def unanswered(*_):
            await silent.wait()

        monkeypatch.setattr(attaching, "READY_SECONDS", 0.05)
        with monkeypatch.context() as patched:
            patched.setattr(connection_module, "configure", unanswered)
            with pytest.raises(
                AttachError, match="the configuration of profile default-scheduler was not ans"
            ):
                await harness.attaching.attach(wanted(folder, "v1", colour="blue"))
        await until(lambda: connection.starts == 2)

        assert ["n0"] == await harness.fitting()


@reports(
    "arguments-refused",
    condition="`ArgumentsAccepted` of the plugin, with its text, as `describe` has it",
    metric="`berth_plugin_condition`",
    log="`plugin refuses arguments, goes on with those before`",
)
async def test_refused_arguments_of_a_list(folder, caplog):
    """Refused arguments of a list stay wanted: those before serve, also when the plugin comes back."""
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        with pytest.raises(AttachError, match="colour: there is no such colour"):
            await harness.attaching.attach(wanted(folder, "v1", colour="none"), insists=True)
        connection = harness.host.versions["colours"].connection
        connection.disconnect("the test says so")
        await until(lambda: connection.starts == 2)
        there = accepted(harness)
        metrics = SchedulerMetrics()
        metrics.watch_plugins(harness.attaching.conditions)
        assert b'berth_plugin_condition{plugin="colours",type="ArgumentsAccepted"} 0.0' in metrics.text()
        fitting = await harness.fitting()
        await harness.attaching.attach(wanted(folder, "v1"))

        assert ("False", "Refused") == there[:2]
        assert "there is no such colour; the arguments before go on serving" in there[2]
        assert "plugin refuses arguments, goes on with those before plugin=colours" in caplog.text
        assert ["n0"] == fitting
        assert ("True", "Accepted", "") == accepted(harness)
        assert harness.attaching.conditions()["colours", "ArgumentsAccepted"] == 1.0


async def test_a_plugin_that_is_away_has_accepted_nothing(folder, monkeypatch):
    """Arguments that come while the plugin is away are offered when it is back, and may be refused then."""
    monkeypatch.setattr(connection_module, "FIRST_BACKOFF_SECONDS", 1.0)
    plugin = Colours("v1")
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        connection = harness.host.versions["colours"].connection
        connection.disconnect("the test says so")
        await until(lambda: not connection.ready)
        await harness.attaching.attach(wanted(folder, "v1", colour="none"), insists=True)
        await until(lambda: connection.starts == 2)

        assert ["n0"] == await harness.fitting()
        assert ("False", "Refused") == accepted(harness)[:2]


async def test_arguments_that_were_accepted_before(folder):
    """An entry may say which arguments the plugin took before: they serve a scheduler that starts anew."""
    async with at_work(folder, Colours("v1")) as harness:
        entry = wanted(folder, "v1", PROFILE, colour="none", accepted=Accepted({"colour": "blue"}))
        await harness.attaching.attach(entry)

        assert ["n1"] == await harness.fitting()
        assert ("False", "Refused") == accepted(harness)[:2]
        assert {PROFILE: {"colour": "blue"}} == harness.attaching.describe("colours")["arguments"]


def accepted(harness):
    """The plugin's condition ArgumentsAccepted."""
    (found,) = [
        each
        for each in harness.attaching.describe("colours")["conditions"]
        if each["type"] == "ArgumentsAccepted"
    ]
    return found["status"], found["reason"], found["message"]


async def test_another_profile(folder):
    """A plugin that is there joins a further profile."""
    plugin = Colours("v1")
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        await harness.attaching.attach(wanted(folder, "v1", OTHER))

        assert ["n0"] == await harness.fitting(profile=OTHER)
        assert {PROFILE, OTHER} == set(plugin.profiles)


async def test_detach(folder):
    """Attempts that began with the plugin end with it, later ones do without; then it is hung up on."""
    plugin = Colours("v1")
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        state = cycle()
        await harness.fitting(state)
        record = record_of(state)
        here = harness.plugin()
        leaving = asyncio.create_task(harness.attaching.detach("colours"))
        await until(lambda: here.leaving)
        assert ["n0", "n1"] == await harness.fitting(cycle(attempt=3))
        late, pod = cycle(attempt=2), record.pod
        assert here.reserve(late, pod, "n1").ok
        await here.reserve(state, pod, "n0")
        assert [("p", "n0")] == plugin.held
        harness.end(state, late)
        await leaving

        assert ([], [], {}) == (harness.attaching.list(), plugin.profiles, harness.host.plugins)
        assert [] == harness.frameworks[PROFILE].plugins.reserve


async def test_detach_from_one_profile(folder):
    """A plugin that leaves one profile stays in the others."""
    plugin = Colours("v1")
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE, OTHER))
        await harness.attaching.detach("colours", [OTHER])

        assert (["n0"], ["n0", "n1"]) == (await harness.fitting(), await harness.fitting(profile=OTHER))
        assert [PROFILE] == plugin.profiles
        with pytest.raises(AttachError, match="profile other does not have colours"):
            await harness.attaching.detach("colours", [OTHER])


async def test_an_attempt_that_does_not_end(folder, monkeypatch):
    """A plugin is not waited for for ever."""
    monkeypatch.setattr(versions, "DRAIN_SECONDS", 0.05)
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        await harness.fitting()
        await harness.attaching.detach("colours")

        assert [] == harness.attaching.list()


async def test_pods_that_wait_for_it_go_on(folder):
    """What waits at Permit on a plugin's wish is turned down when that plugin leaves, and tried again."""
    refusals = []
    waiting = SimpleNamespace(
        pending_plugins=lambda: ["colours"], reject=lambda plugin, text: refusals.append((plugin, text))
    )
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        harness.host._waiting_pods = [waiting]
        await harness.attaching.detach("colours")

    assert [("colours", "plugin colours was detached")] == refusals


# What `berth plugin list` shows.


def states(harness):
    """The version and state of each line of the list."""
    return [(line["version"], line["state"]) for line in harness.attaching.list()]


async def test_a_draining_version_has_a_line_and_a_recording_of_its_own(folder):
    """A recording of the new version is none of the old one, which is in the list until its attempts end."""
    async with at_work(folder, Colours("v1"), Colours("v2")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        state = cycle()
        await harness.fitting(state)
        await harness.attaching.attach(wanted(folder, "v2"))
        recording = harness.attaching.record("colours", Extent())
        assert [("v2", "ready"), ("v1", "draining")] == states(harness)
        described = harness.attaching.describe("colours")
        assert (True, [False]) == (
            described["recording"],
            [old["recording"] for old in described["draining"]],
        )

        harness.attaching.end_recording(recording)
        harness.end(state)
        await until(lambda: not harness.host.others)
        assert [("v2", "ready")] == states(harness)


async def test_a_version_that_gets_ready_is_not_draining(folder):
    """A version beside the one in use is no old one before it took its place."""
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        new = asyncio.create_task(harness.attaching.attach(wanted(folder, "v9")))
        await until(lambda: harness.host.others)

        assert [("v1", "ready")] == states(harness)
        assert [] == harness.attaching.describe("colours")["draining"]
        new.cancel()
        await asyncio.gather(new, return_exceptions=True)


async def test_a_plugin_on_its_way_out_is_draining(folder):
    """While a detachment waits for attempts, the plugin begins none."""
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        state = cycle()
        await harness.fitting(state)
        leaving = asyncio.create_task(harness.attaching.detach("colours"))
        await until(lambda: harness.plugin().leaving)

        assert [("v1", "draining")] == states(harness)
        harness.end(state)
        await leaving


async def test_slow_hung_and_failing_are_distinguished(folder):
    """A late call makes a plugin slow; three in a row hung, until it is back; wrong answers failing."""
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        connection = harness.host.connections["colours"]
        connection.late()
        assert [("v1", "slow")] == states(harness)
        for _ in range(LATE_CALLS - 1):
            connection.late()
        await until(lambda: not connection.ready)
        assert [("v1", "hung")] == states(harness)
        assert f"{LATE_CALLS} calls in a row" in harness.attaching.list()[0]["error"]

        await until(lambda: connection.ready)
        for _ in range(FAILURES_IN_A_ROW):
            connection.failed(ProtocolError("colours", "wrong"))
        assert [("v1", "failing")] == states(harness)


async def test_slow_for_a_while_only(folder, monkeypatch):
    """What was late long ago says nothing of today."""
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        monkeypatch.setattr(connection_module, "SLOW_SECONDS", 0.0)
        harness.host.connections["colours"].late()

        assert [("v1", "ready")] == states(harness)
