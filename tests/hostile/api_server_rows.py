"""The rows of an attack on a real API server, beside Berth and beside kube-scheduler: `tests.hostile rows`.

The names and what happened before are those of the report of that attack, whose Berth was that of 41835d1 and
a little younger. M2 has no row: a SchedulerPlugin that names Secrets is the operator's, no scheduler has a
part in it, and `tests/unit/operator/test_rendering.py` shows which ones it may name.
"""

import asyncio
import json
from asyncio.subprocess import PIPE, STDOUT
from contextlib import suppress
from typing import NamedTuple

import aiohttp

from berth.aggregated_api.leaders import ANNOTATION
from berth.aggregated_api.replicas import VARIABLE
from berth.client.errors import ClientError
from berth.client.resources import LEASES
from berth.demo.processes import program
from tests.hostile.arena import LOOPBACK, pod
from tests.hostile.cases import CASES, churn
from tests.hostile.cases.sidecars import with_plugin
from tests.hostile.playing import Case
from tests.hostile.probes import LEASE

EVERYWHERE = """\
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: hostile}]
"""
EXPLAINED = "/apis/explain.berth.dev/v1alpha1/namespaces/default/podexplanations/asked"
ESCAPED = 1_400_000
"""Bytes of a pod that the API server writes as six each."""


class ReportedRow(NamedTuple):
    """A row of the report: what happened to Berth before, and beside kube-scheduler; `case` plays it."""

    row: str
    before: str
    case: Case
    beside_kube_scheduler: bool = True
    beside_standby: Case | None = None
    """The row where it is the leader's death that is played, if that is another one."""


async def restart_beside_it(arena):
    """The claim with halves of surrogates, and a scheduler that starts while it is there."""
    await CASES["D3"].attack(arena)
    await asyncio.sleep(2)
    ready, cpu = await arena.restart()
    arena.notes["restart"] = f"started again beside the claim: ready after {ready:.1f} s, {cpu:.1f} s of CPU"
    await asyncio.Event().wait()


async def larger_as_json(arena):
    """Pods of 1.4 MB in etcd and 8 MB as JSON: `<` is written as six characters."""
    for number in range(3):
        env = [{"name": "TEXT", "value": "<" * ESCAPED}]
        await arena.write(pod(f"larger-{number}", container={"env": env}))


async def name_another_server(arena):
    """A lease says again and again that its leader answers somewhere else, and a standby is asked."""
    reached, asked = [], {}
    await arena.write(pod("asked", nodeSelector={"no": "node"}))
    token = arena.folder / "token"
    token.write_text("secret", encoding="ascii")

    def accept(_reader, writer):
        reached.append(True)
        writer.close()

    server = await asyncio.start_server(accept, LOOPBACK)
    address = "{}:{}".format(*server.sockets[0].getsockname()[:2])
    try:
        async with arena.standby({VARIABLE: str(token)}) as surface:
            url = f"{surface.url}{EXPLAINED}"
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as session:
                while True:
                    await _publish(arena, address)
                    with suppress(aiohttp.ClientError, TimeoutError):
                        async with session.get(url, ssl=False) as response:
                            await response.read()
                            asked[response.status] = asked.get(response.status, 0) + 1
                    arena.notes["lease"] = f"{len(reached)} connections to it; standby answered {asked}"
                    await asyncio.sleep(0.2)
    finally:
        server.close()


async def _publish(arena, address):
    """Write that the holder of the lease answers there."""
    with suppress(ClientError):
        lease = json.loads(await arena.api.get(LEASES, *LEASE))
        said = {"identity": lease["spec"]["holderIdentity"], "address": address, "certificate": "00" * 32}
        text = json.dumps({**said, "profiles": ["default-scheduler"]})
        body = json.dumps({"metadata": {"annotations": {ANNOTATION: text}}}).encode()
        await arena.api.patch(LEASES, *LEASE, body)


async def escapes(arena):
    """A claim's name with escape sequences and bidi characters, and what `berth explain` prints of it."""
    name = "x\x1b[31mred\u202edlrow"
    source = {"claimName": name}
    await arena.write(pod("forged", volumes=[{"name": "v", "persistentVolumeClaim": source}]))
    if not arena.is_berth:
        return
    await asyncio.sleep(3)
    server = ("--server", arena.surface.url, "--insecure-skip-tls-verify", "--token", "any")
    command = (program("berth"), "explain", "pod", "forged", "-n", "default", *server)
    child = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
    said = (await child.communicate())[0].decode()
    found = sum(said.count(character) for character in "\x1b\u202e")
    shown = "the name shown as text" if r"red\u202edlrow" in said else "the name not shown"
    arena.notes["explain"] = f"{found} control characters of it printed, {shown}"


ROWS = {
    row.row: row
    for row in (
        ReportedRow("K1", "one turn of over 88 s: /livez failed, the lease was lost", CASES["K1"]),
        ReportedRow(
            "K2", "0.4 s for each pod of others, charged to its own namespace: held for 227 s", CASES["K2"]
        ),
        ReportedRow(
            "K3",
            "a scheduler that starts never syncs",
            Case(
                "K3",
                "user",
                "a claim with halves of surrogates; the scheduler is started again",
                restart_beside_it,
                CASES["D3"].objects,
            ),
            beside_standby=CASES["D3"],
        ),
        ReportedRow(
            "H1",
            "its own request refused, the plugin's circuit open for up to 30 s",
            Case(
                "H1",
                "user",
                "pending pods of 8 MB as JSON beside a plugin of all pods",
                larger_as_json,
                prepare=with_plugin("nothing", configuration=EVERYWHERE),
            ),
        ),
        ReportedRow("H2", "a third of the throughput was left", CASES["E1"], beside_kube_scheduler=False),
        ReportedRow(
            "H3",
            "the scheduler's bearer token was sent to the address",
            Case(
                "H3",
                "writer of leases",
                "a lease that names another server as its leader's",
                name_another_server,
            ),
            beside_kube_scheduler=False,
        ),
        ReportedRow("H4", "18.6 s of CPU, superlinear (20,000 constraints)", CASES["S7"]),
        ReportedRow(
            "M1",
            "`berth explain` printed them",
            Case("M1", "user", "escape sequences and bidi characters in a claim's name", escapes),
        ),
    )
}


CHURN = {
    case.row: ReportedRow(case.row, "", case, beside_kube_scheduler=case.prepare is None)
    for case in churn.CASES
}
"""Rows of a later attack, each of small objects that change without pause."""
ALL = {**ROWS, **CHURN}
