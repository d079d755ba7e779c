"""Plugins that step into the shadow of their profiles and out of it, while pods are being scheduled."""

import asyncio
from types import SimpleNamespace

import pytest

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.framework.runtime import Framework, ProfilePlugins
from berth.out_of_tree.enabled_plugins import EnabledPlugins
from berth.out_of_tree.lifecycle.wanted import AttachError
from berth.scheduler.sidecars.plugin_list_file import PluginListFile
from berth_sdk import ArgumentError
from tests.unit.out_of_tree.lifecycle.test_attaching import OTHER, Colours, at_work, folder, record_of, wanted
from tests.unit.out_of_tree.scripted import PROFILE, cycle, until

__all__ = ["folder"]

LIST = """
apiVersion: berth.dev/v1alpha1
kind: PluginList
plugins:
- {{name: colours, address: "{address}", profiles: [{profile}], args: {{colour: red}}, shadow: {shadow}}}
"""


class Wary(Colours):
    """Notes how it is configured, and refuses what a test says."""

    def __init__(self, version):
        super().__init__(version)
        self.refuses = False

    def configure(self, arguments, profile):
        if self.refuses:
            raise ArgumentError("colour: not like this")
        super().configure(arguments, profile)


async def test_into_the_shadow_and_back(folder):
    """In shadow a plugin takes part in nothing and is still there; then it takes part as before."""
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        await harness.attaching.shadow("colours", on=True)
        plugins = harness.frameworks[PROFILE].plugins
        assert (["n0", "n1"], [], {}) == (await harness.fitting(), plugins.reserve, plugins.by_name)
        assert harness.frameworks[PROFILE].decision_observers
        assert {PROFILE} == set(harness.attaching.describe("colours")["comparison"])
        await harness.attaching.shadow("colours", on=False)

        assert ["n0"] == await harness.fitting()
        assert [] == harness.frameworks[PROFILE].decision_observers
        assert {} == harness.attaching.describe("colours")["comparison"]


async def test_attached_in_shadow(folder):
    """A plugin whose entry says so joins as a shadow, and takes part once the entry says otherwise."""
    async with at_work(folder, Colours("v1")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE, shadow=True))
        assert (True, ["n0", "n1"]) == (harness.attaching.list()[0]["shadow"], await harness.fitting())
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))

        assert (False, ["n0"]) == (harness.attaching.list()[0]["shadow"], await harness.fitting())


async def test_attempts_under_way(folder):
    """Attempts that began with the plugin end with it before it steps aside; pods that wait for it go on."""
    plugin, refusals = Colours("v1"), []
    waiting = SimpleNamespace(
        pending_plugins=lambda: ["colours"], reject=lambda _plugin, text: refusals.append(text)
    )
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE))
        harness.host._waiting_pods = [waiting]
        state = cycle()
        await harness.fitting(state)
        here = harness.plugin()
        turning = asyncio.create_task(harness.attaching.shadow("colours", on=True))
        await until(lambda: here.leaving)
        assert ["n0", "n1"] == await harness.fitting(cycle(attempt=2))
        assert [] == harness.frameworks[PROFILE].decision_observers
        await here.reserve(state, record_of(state).pod, "n0")
        harness.end(state)
        await turning

        assert ([("p", "n0")], ["plugin colours is in shadow now"]) == (plugin.held, refusals)
        assert harness.frameworks[PROFILE].decision_observers


@pytest.mark.parametrize("on", [True, False])
async def test_refused(folder, on):
    """A plugin that refuses stays what it was."""
    plugin = Wary("v1")
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE, shadow=not on))
        plugin.refuses = True
        with pytest.raises(AttachError, match="not like this"):
            await harness.attaching.shadow("colours", on=on)

        assert (["n0"] if on else ["n0", "n1"]) == await harness.fitting()
        assert (not on) is harness.attaching.list()[0]["shadow"]


async def test_the_list_says_so(folder):
    """A change of `shadow` in the list that the scheduler follows turns the plugin, both ways."""
    listed = folder / "plugins.yaml"

    async def keep():
        """There is nothing to keep."""

    async with at_work(folder, Colours("v1")) as harness:
        file = PluginListFile(str(listed), {}, harness.attaching, keep)
        found = []
        for shadow in ("true", "false", "true"):
            listed.write_text(LIST.format(address=f"unix:{folder}/v1.sock", profile=PROFILE, shadow=shadow))
            await file.look()
            state = cycle()
            found.append(await harness.fitting(state))
            harness.end(state)

        assert [["n0", "n1"], ["n0"], ["n0", "n1"]] == found


async def test_arguments_stay(folder):
    """What profiles are configured with stays, whether it comes from the entry or from the profile itself."""
    plugin = Colours("v1")
    async with at_work(folder, plugin, own={OTHER: {"colour": "blue"}}) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE, OTHER))
        known = harness.attaching.describe("colours")["arguments"]
        await harness.attaching.attach(wanted(folder, "v1", shadow=True))

        assert {PROFILE: {"colour": "red"}, OTHER: {"colour": "blue"}} == known
        assert known == harness.attaching.describe("colours")["arguments"]


@pytest.mark.parametrize(
    ("was", "is_now", "fitting"),
    [(False, True, ["n0", "n1"]), (True, False, ["n1"]), (True, True, ["n0", "n1"])],
)
async def test_replaced(folder, was, is_now, fitting):
    """Another version takes over as its entry says, in shadow or not."""
    async with at_work(folder, Colours("v1"), Colours("v2")) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE, shadow=was))
        await harness.attaching.attach(wanted(folder, "v2", colour="blue", shadow=is_now))

        assert fitting == await harness.fitting()
        assert ("v2", is_now) == (
            harness.attaching.list()[0]["version"],
            harness.attaching.list()[0]["shadow"],
        )


async def test_detached(folder):
    """A plugin in shadow leaves like any other, and nothing of it stays."""
    plugin = Colours("v1")
    async with at_work(folder, plugin) as harness:
        await harness.attaching.attach(wanted(folder, "v1", PROFILE, shadow=True))
        await harness.attaching.detach("colours")

        assert ([], [], {}) == (harness.attaching.list(), plugin.profiles, harness.host.plugins)
        assert [] == harness.frameworks[PROFILE].decision_observers


def test_places():
    """A plugin that leaves a point comes back to its place, whatever the others did meanwhile."""
    a, b, c = (SimpleNamespace(name=name, in_process=True, leaving=False) for name in "abc")
    framework = Framework(
        PROFILE, ProfilePlugins(filter=[a, b], score=[(a, 3), (b, 1)], by_name={"a": a, "b": b})
    )
    enabled = EnabledPlugins(framework)
    enabled.set_aside(a)
    enabled.set_aside(b)
    enabled.enable(c, SidecarSpec("c", "h:1"), 5)
    assert ([c], [(c, 5)]) == (framework.plugins.filter, framework.plugins.score)
    enabled.take_back(b)
    enabled.take_back(a)

    assert [a, b, c] == framework.plugins.filter
    assert [(a, 3), (b, 1), (c, 5)] == framework.plugins.score
    assert (3, frozenset({"filter", "score"})) == (enabled.weight_of(a), enabled.points_of(a))
