"""Random edits by two users, under three Schedulers and an operator that is ended again and again.

`python -m tests.unit.operator.random_edits --seconds 600` plays them for so long; a test plays a few. One
user has what `edit` gives on the objects that are kept, the other has berth-editor. When they stop, all is as
the specs say, and what is not the operator's is as it was.
"""

import asyncio
import json
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import click

from berth.client import Api, load_endpoint
from berth.client.errors import ClientError
from berth.operator.drift import differs
from berth.operator.kinds import CLUSTER_ROLES, KEPT
from berth.operator.rendering import Settings, plan
from berth.sandbox.access.identity import service_account
from tests.unit.client.conftest import transport_to
from tests.unit.operator import kit
from tests.unit.operator.at_work import PLUGINS, SCHEDULERS, SYSTEM, installed, operator
from tests.unit.operator.rights import RBAC

NAMES = ("one", "two", "three")
FOREIGN = "not-of-berth"
# What editors of a namespace may change of what is kept in it.
EDITED = ("services", "configmaps", "deployments", "networkpolicies", "poddisruptionbudgets")
_BY_PLURAL = {resource.plural: (kind, resource) for kind, resource in KEPT.items()}
_EDIT = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "edit-kept"},
    "rules": [
        {
            "apiGroups": sorted({_BY_PLURAL[plural][1].group for plural in EDITED}),
            "resources": list(EDITED),
            "verbs": ["create", "patch", "delete"],
        }
    ],
}
USERS = {"editor": "edit-kept", "berth-editor": "berth-editor"}
GRANTS = [
    _EDIT,
    *(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": user, "namespace": SYSTEM},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": SYSTEM}],
        }
        for user, role in USERS.items()
    ),
]


def collection(plural):
    """Give the name under which the sandbox stores a kind."""
    group = _BY_PLURAL[plural][1].group
    return f"{plural}.{group}" if group else plural


def edit_of_kept(rng, work):
    """Give an edit of an object that is kept: (method, path, body)."""
    plural = rng.choice(EDITED)
    names = [name for name in work.objects(collection(plural)) if name.startswith("berth-")]
    if not names:
        return None
    path = _BY_PLURAL[plural][1].path(SYSTEM, rng.choice(sorted(names)))
    changes = [{"metadata": {"labels": None}}, {"metadata": {"annotations": None}}]
    if plural == "deployments":
        changes += [{"spec": {"replicas": 0}}, {"spec": {"minReadySeconds": 3, "paused": True}}]
    return rng.choice([("DELETE", path, {}), *(("PATCH", path, change) for change in changes)])


def edit_of_ours(rng, _work):
    """Give an edit of a Scheduler or SchedulerPlugin, good or bad."""
    if not rng.randrange(4):
        return "PATCH", f"{PLUGINS}/gpu-share", {"spec": {"arguments": {"policy": str(rng.random())}}}
    name = rng.choice(NAMES)
    bad = {"multiPoint": {"enabled": [{"name": "Nope"}]}}
    fewer = {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}
    spec = rng.choice(
        [
            {"parallelism": rng.randrange(1, 9)},
            {"replicas": rng.randrange(1, 4)},
            {"networkPolicy": bool(rng.randrange(2))},
            {"profiles": [{"schedulerName": name, "plugins": rng.choice([bad, fewer])}]},
            {"plugins": rng.choice([[], [{"name": "gpu-share"}], [{"name": "absent"}]])},
            {"rollout": {"paused": bool(rng.randrange(2))}},
        ]
    )
    return "PATCH", f"{SCHEDULERS}/{name}", {"spec": spec}


async def edit(rng, work, clients, count):
    """Have the users make so many edits; those that the API server refuses count, too."""
    for _ in range(count):
        user, choose = rng.choice([("editor", edit_of_kept), ("berth-editor", edit_of_ours)])
        chosen = choose(rng, work)
        if chosen is None:
            continue
        method, path, body = chosen
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        with suppress(ClientError):
            await clients[user].call(method, path, json.dumps(body).encode(), content_type=media)
        await asyncio.sleep(0)


def wrong(work):
    """Give what is not as the specs say."""
    found = work.objects("schedulers.berth.dev")
    plugins = work.objects("schedulerplugins.berth.dev")
    stored = {kind: work.objects(collection(resource.plural)) for kind, resource in KEPT.items()}
    return [
        f"{one['kind']} {one['metadata']['name']}"
        for name in NAMES
        for one in plan(found[name], plugins, Settings("berth/scheduler:test")).objects
        if differs(stored[one["kind"]].get(one["metadata"]["name"]), one)
    ]


async def play(folder, rounds, edits, seed):
    """Play rounds of edits, each under an operator of its own that is ended in the middle of its work."""
    rng = Random(seed)
    async with installed(folder, grants=GRANTS) as work:
        await work.send("POST", PLUGINS, kit.plugin(profiles=list(NAMES)))
        for name in NAMES:
            await work.send("POST", SCHEDULERS, kit.scheduler(name, profiles=[{"schedulerName": name}]))
        for plural in ("services", "configmaps"):
            spec = {"spec": {"ports": [{"port": 80}]}} if plural == "services" else {}
            body = {"metadata": {"name": FOREIGN, "labels": {"berth.dev/scheduler": "one"}}, **spec}
            await work.send("POST", f"/api/v1/namespaces/{SYSTEM}/{plural}", body)
        before = [work.objects(plural)[FOREIGN] for plural in ("services", "configmaps")]
        roles = set(work.objects(f"{CLUSTER_ROLES.plural}.{CLUSTER_ROLES.group}"))
        clients = {}
        for user in USERS:
            (folder / user).write_text(work.sandbox.kubeconfig_for(service_account(SYSTEM, user)))
        async with (
            transport_to(load_endpoint(kubeconfig=str(folder / "editor"), environ={})) as first,
            transport_to(load_endpoint(kubeconfig=str(folder / "berth-editor"), environ={})) as second,
        ):
            clients = {"editor": Api(first), "berth-editor": Api(second)}
            for _ in range(rounds):
                with suppress(asyncio.CancelledError):
                    async with operator(folder, work) as process:
                        await edit(rng, work, clients, edits)
                        process.cancel()
        await end(folder, work)
        assert before == [work.objects(plural)[FOREIGN] for plural in ("services", "configmaps")]
        assert roles == set(work.objects(f"{CLUSTER_ROLES.plural}.{CLUSTER_ROLES.group}"))


async def end(folder, work):
    """Give every Scheduler a good spec, and wait until all is as they say."""
    for name in NAMES:
        spec = {
            "profiles": [{"schedulerName": name}],
            "plugins": [{"name": "gpu-share"}],
            "replicas": 2,
            "rollout": {"paused": False},
        }
        await work.send("PATCH", f"{SCHEDULERS}/{name}", {"spec": spec})
    async with operator(folder, work):
        for name in NAMES:
            await work.reach(lambda one=name: work.condition("Progressing", one) == ("False", "RolledOut"))
            await work.reach(lambda one=name: work.condition("Degraded", one) == ("False", "AsExpected"))
        await work.reach(lambda: not wrong(work))


@click.command()
@click.option("--seconds", default=600.0, show_default=True, help="For how long.")
@click.option("--seed", default=1, show_default=True, help="Of the first game; each game takes the next.")
def main(seconds, seed):
    """Play games of ten operators each until the time is over."""
    deadline, games = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(play(Path(folder), 10, 40, seed + games))
        games += 1
        click.echo(f"seed {seed + games - 1}: as the specs say")


if __name__ == "__main__":
    main()
