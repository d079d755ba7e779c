"""Random edits by two users, under three Schedulers and an operator that is ended again and again.

`python -m tests.unit.operator.random_edits --seconds 600` plays them for so long; a test plays a few. One
user has what `edit` gives on the objects that are kept, references to their owners included, the other has
berth-editor. When they stop, and what is no longer the operator's is deleted as its conditions ask, all is
as the specs say, and what is not the operator's is as it was. The Deployment of one Scheduler is spared:
however its spec is edited and its operator ended, a replica of it is ready at any time. Replicas campaign
(hand_overs.py): never do two of a Scheduler lead, and no lease stays with none while a replica is ready. How
long each Scheduler was without a ready replica, and its replicas without a leader, is printed beside the time
that a hand-over takes.
"""

import asyncio
import json
import tempfile
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

import click

from berth.client import Api, load_endpoint
from berth.client.errors import ClientError, NotFoundError
from berth.operator.drift import differs
from berth.operator.kinds import AUTHORITY, CLUSTER_ROLES, KEPT, SECRETS
from berth.operator.ownership import controller_uid
from berth.operator.rendering import SchedulerDefaults, plan
from berth.sandbox.access.identity import service_account
from tests.unit.client.conftest import transport_to
from tests.unit.operator import kit
from tests.unit.operator.at_work import PLUGINS, SCHEDULERS, SYSTEM, installed, operator
from tests.unit.operator.hand_overs import hand_overs, table
from tests.unit.operator.rights import RBAC

NAMES = ("one", "two", "three")
FOREIGN = "not-of-berth"
# What editors of a namespace may change of what is kept in it.
SPARED = NAMES[-1]
EDITED = ("services", "configmaps", "deployments", "networkpolicies", "poddisruptionbudgets")
RESOURCES = {resource.plural: resource for resource in (*KEPT.values(), SECRETS)}
OTHER_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "of-what-is-gone"}
_EDIT = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "edit-kept"},
    "rules": [
        {
            "apiGroups": sorted({RESOURCES[plural].group for plural in EDITED}),
            "resources": [*EDITED, "secrets"],
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
    group = RESOURCES[plural].group
    return f"{plural}.{group}" if group else plural


def edit_of_kept(rng, work):
    """Give an edit of an object that is kept: (method, path, body)."""
    plural = rng.choice((*EDITED, "secrets"))
    names = [name for name in work.objects(collection(plural)) if name.startswith("berth-")]
    if plural == "deployments":
        names = [name for name in names if not name.endswith(SPARED)]
    if not names:
        return None
    path = RESOURCES[plural].path(SYSTEM, rng.choice(sorted(names)))
    changes = [{"metadata": {"labels": None}}, {"metadata": {"annotations": None}}]
    changes += [{"metadata": {"ownerReferences": owners}} for owners in (None, [OTHER_OWNER])]
    if plural == "secrets":
        changes.append({"data": None})
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
    settings = SchedulerDefaults(
        "berth/scheduler:test", authority=work.objects("configmaps")[AUTHORITY]["data"]["ca.crt"]
    )
    stored = {kind: work.objects(collection(resource.plural)) for kind, resource in KEPT.items()}
    return [
        f"{one['kind']} {one['metadata']['name']}"
        for name in NAMES
        for one in plan(found[name], plugins, settings).objects
        if differs(stored[one["kind"]].get(one["metadata"]["name"]), one)
    ]


async def play(folder, rounds, edits, seed):
    """Play rounds of edits, each under an operator of its own that is ended in the middle of its work.

    Gives what was seen of each Scheduler.
    """
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
            async with placing(work), hand_overs(work, folder, SYSTEM, NAMES) as seen:
                for _ in range(rounds):
                    with suppress(asyncio.CancelledError):
                        async with operator(folder, work) as process:
                            await edit(rng, work, clients, edits)
                            process.cancel()
                await end(folder, work)
        seen.check()
        assert 0 == seen.led[SPARED].times_unready
        assert before == [work.objects(plural)[FOREIGN] for plural in ("services", "configmaps")]
        assert roles == set(work.objects(f"{CLUSTER_ROLES.plural}.{CLUSTER_ROLES.group}"))
        return seen.led


@asynccontextmanager
async def placing(work):
    """Pods are put on a node, until the block ends."""

    async def place():
        while True:
            await work.place()
            await asyncio.sleep(0.01)

    task = asyncio.create_task(place())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def delete_strays(work):
    """Delete what the operator refuses to touch because its owner or its labels were taken away."""
    for plural, resource in RESOURCES.items():
        if plural not in (*EDITED, "secrets"):
            continue
        for name, one in work.objects(collection(plural)).items():
            ours = "app.kubernetes.io/managed-by" in one["metadata"].get("labels", {})
            if name.startswith("berth-") and not (ours if plural == "secrets" else controller_uid(one)):
                with suppress(NotFoundError):
                    await work.send("DELETE", resource.path(SYSTEM, name))


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
    await delete_strays(work)
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
    deadline, games = time.monotonic() + seconds, []
    while time.monotonic() < deadline:
        now = seed + len(games)
        with tempfile.TemporaryDirectory() as folder:
            games.append(asyncio.run(play(Path(folder), 10, 40, now)))
        click.echo(f"seed {now}: as the specs say")
    click.echo(f"The longest that each Scheduler was without, in {len(games)} games:\n{table(games)}")


if __name__ == "__main__":
    main()
