"""Schedulers and SchedulerPlugins of a namespace, shown and changed with the user's rights.

What is changed reaches all replicas, and lasts.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from berth.cli.asking.cluster import KubeconfigCluster
from berth.cli.failing import fail

if TYPE_CHECKING:
    from berth.client.api import Api
    from berth.client.resources import Resource

Json = dict[str, Any]
T = TypeVar("T")

_NO_KIND = (
    "this cluster has no SchedulerPlugins: its schedulers are kept by no operator (docs/install.md, "
    "crds.yaml); name a scheduler's secure port with --server"
)


class Keeper(msgspec.Struct, frozen=True):
    """The namespace whose resources an operator keeps, and how to reach the API server.

    Without `namespace` it is the context's; without `scheduler` the only Scheduler there. Every method ends
    the program with the API server's words where that fails.
    """

    cluster: KubeconfigCluster
    namespace: str = ""
    scheduler: str = ""

    def listed(self) -> list[Json]:
        """The namespace's SchedulerPlugins, those of the one Scheduler alone where it is named."""
        return self._run(lambda resources: resources.listed(self.scheduler))

    def described(self, name: str) -> tuple[Json, list[Json]]:
        """A SchedulerPlugin, and the Schedulers that run it."""
        return self._run(lambda resources: resources.described(name))

    def shadow(self, name: str, *, on: bool) -> str:
        """Put a SchedulerPlugin into shadow, or have it take part; gives what was done, as a sentence."""
        return self._run(lambda resources: resources.shadow(name, on=on))

    def attach(self, name: str, given: Mapping[str, Any]) -> str:
        """Make or change a SchedulerPlugin, and have the Scheduler run it; gives what was done.

        `given` are fields of its spec.
        """
        return self._run(lambda resources: resources.attach(name, given, self.scheduler))

    def detach(self, name: str, profiles: Collection[str]) -> str:
        """Take a plugin out of the Scheduler, or of all that run it; gives what was done.

        With `profiles` it is taken out of these alone. The SchedulerPlugin stays.
        """
        return self._run(lambda resources: resources.detach(name, profiles, self.scheduler))

    def _run(self, work: Callable[["_Resources"], Awaitable[T]]) -> T:
        from berth.client.errors import NotFoundError  # noqa: PLC0415 (quick start of the other verbs)

        with self.cluster.asked():
            namespace = self.namespace or self.cluster.namespace()
            try:
                return asyncio.run(self.cluster.ask(lambda api: work(_Resources(api, namespace))))
            except NotFoundError as error:
                if "berth.dev" in error.message:  # the object, and not its kind
                    raise
                fail(_NO_KIND)


class _Resources:
    """The resources of one namespace. What is read is written with its version: no other change is lost."""

    def __init__(self, api: "Api", namespace: str) -> None:
        # Imported here so that the other verbs start quickly.
        from berth.client.resources import SCHEDULER_PLUGINS, SCHEDULERS  # noqa: PLC0415 (see above)

        self._api = api
        self._namespace = namespace
        self._plugins, self._schedulers = SCHEDULER_PLUGINS, SCHEDULERS

    async def listed(self, scheduler: str) -> list[Json]:
        schedulers = await self._all()
        users = schedulers if not scheduler else [self._chosen(schedulers, scheduler)]
        answer = await self._api.call("GET", self._plugins.collection(self._namespace))
        found: list[Json] = json.loads(answer).get("items") or []
        return [
            one
            for one in found
            if not scheduler or any(_runs(user, one["metadata"]["name"]) for user in users)
        ]

    async def described(self, name: str) -> tuple[Json, list[Json]]:
        schedulers = await self._all()
        plugin = json.loads(await self._api.get(self._plugins, self._namespace, name))
        return plugin, [one for one in schedulers if _runs(one, name)]

    async def shadow(self, name: str, *, on: bool) -> str:
        await self._all()
        plugin = json.loads(await self._api.get(self._plugins, self._namespace, name))
        plugin["spec"]["shadow"] = on
        await self._replace(self._plugins, plugin)
        names: list[str] = (plugin.get("status") or {}).get("schedulers") or []
        verb = "is in shadow" if on else "takes part"
        return f"SchedulerPlugin {self._namespace}/{name} {verb} in {', '.join(names) or 'no Scheduler yet'}"

    async def attach(self, name: str, given: Mapping[str, Any], scheduler: str) -> str:
        found = self._chosen(await self._all(), scheduler)
        await self._describe(name, given)
        listed = found["spec"].setdefault("plugins", [])
        if name not in [one["name"] for one in listed]:
            listed.append({"name": name})
            await self._replace(self._schedulers, found)
        return f"SchedulerPlugin {self._namespace}/{name} attached to Scheduler {found['metadata']['name']}"

    async def detach(self, name: str, profiles: Collection[str], scheduler: str) -> str:
        every = await self._all()
        users = [one for one in every if _runs(one, name)]
        if scheduler:
            users = [one for one in users if one["metadata"]["name"] == scheduler]
        if not users:
            which = f"Scheduler {scheduler}" if scheduler else "no Scheduler"
            verb = "does not run" if scheduler else "runs"
            fail(f"{which} of namespace {self._namespace} {verb} plugin {name}")
        if profiles:
            await self._leave(name, profiles)
        for one in users:
            _take_out(one["spec"], name, profiles)
            await self._replace(self._schedulers, one)
        names = ", ".join(str(one["metadata"]["name"]) for one in users)
        return f"SchedulerPlugin {self._namespace}/{name} detached from Scheduler {names}"

    async def _describe(self, name: str, given: Mapping[str, Any]) -> None:
        """Make a SchedulerPlugin, or change the fields that are given."""
        from berth.client.errors import NotFoundError  # noqa: PLC0415 (quick start of the other verbs)

        try:
            plugin: Json = json.loads(await self._api.get(self._plugins, self._namespace, name))
        except NotFoundError:
            if not {"image", "address"} & given.keys():
                fail(f"no SchedulerPlugin {self._namespace}/{name}: give --image or --address to make it")
            head = {"apiVersion": self._plugins.api_version, "kind": "SchedulerPlugin"}
            plugin = {**head, "metadata": {"name": name}, "spec": dict(given)}
            await self._api.create(self._plugins, self._namespace, json.dumps(plugin).encode())
            return
        spec = plugin["spec"]
        for one, other in (("image", "address"), ("address", "image")):
            if one in given:
                spec.pop(other, None)
        spec.update(given)
        await self._replace(self._plugins, plugin)

    async def _leave(self, name: str, profiles: Collection[str]) -> None:
        plugin = json.loads(await self._api.get(self._plugins, self._namespace, name))
        before = plugin["spec"].get("profiles") or []
        plugin["spec"]["profiles"] = [one for one in before if one not in profiles]
        if plugin["spec"]["profiles"] != before:
            await self._replace(self._plugins, plugin)

    def _chosen(self, every: Sequence[Json], scheduler: str) -> Json:
        found = [one for one in every if scheduler in ("", one["metadata"]["name"])]
        if len(found) != 1:
            names = ", ".join(str(one["metadata"]["name"]) for one in every) or "none"
            fail(f"name one Scheduler of namespace {self._namespace} with --scheduler; there are: {names}")
        return found[0]

    async def _all(self) -> list[Json]:
        """The namespace's Schedulers, at least one."""
        answer = await self._api.call("GET", self._schedulers.collection(self._namespace))
        items: list[Json] = json.loads(answer).get("items") or []
        if not items:
            fail(f"namespace {self._namespace} has no Scheduler: {await self._other_namespaces()}")
        head = {"apiVersion": self._schedulers.api_version, "kind": "Scheduler"}
        return [{**head, **one} for one in items]

    async def _other_namespaces(self) -> str:
        """Where Schedulers are, as far as the user may see, and what to write."""
        from berth.client.errors import ObjectError  # noqa: PLC0415 (quick start of the other verbs)

        try:
            answer = await self._api.call("GET", self._schedulers.collection(""))
        except ObjectError:
            return "name theirs with -n"
        found = sorted({one["metadata"]["namespace"] for one in json.loads(answer).get("items") or ()})
        return (
            f"name theirs with -n; there are some in {', '.join(found)}" if found else "the cluster has none"
        )

    async def _replace(self, resource: "Resource", document: Json) -> None:
        name = document["metadata"]["name"]
        await self._api.update(resource, self._namespace, name, json.dumps(document).encode())


def _runs(scheduler: Json, name: str) -> bool:
    return name in [one["name"] for one in scheduler["spec"].get("plugins") or ()]


def _take_out(spec: Json, name: str, profiles: Collection[str]) -> None:
    """Take a plugin out of these profiles; out of the whole spec where none are given."""
    for profile in spec["profiles"]:
        if not profiles or profile["schedulerName"] in profiles:
            for entries in _mentions(profile):
                entries[:] = [one for one in entries if one["name"] != name]
    if not profiles:
        spec["plugins"] = [one for one in spec["plugins"] if one["name"] != name]


def _mentions(profile: Json) -> Iterator[list[Json]]:
    """Give the lists of a profile in which plugins are named."""
    for point in (profile.get("plugins") or {}).values():
        yield point.get("enabled") or []
        yield point.get("disabled") or []
    yield profile.get("pluginConfig") or []
