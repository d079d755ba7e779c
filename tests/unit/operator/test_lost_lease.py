"""An operator that loses its lease ends with that one error, however many of its parts find it out."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from berth.client.api import Api
from berth.client.errors import LeaseLostError
from berth.operator.process import Operator, OperatorSettings
from berth.operator.rendering import SchedulerDefaults
from tests.failures.reporting import reports
from tests.unit.client.conftest import answer, eventually, raw_server, read_request, transport_to
from tests.unit.operator.at_work import SYSTEM, operating

LEASES = "leases.coordination.k8s.io"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/berth-operator"


async def lose_the_lease(tmp_path):
    """Run an operator, write another holder into its lease, and wait for its end."""
    async with operating(tmp_path) as operator:
        await operator.reach(lambda: operator.objects(LEASES))
        await operator.send("PATCH", LEASE, {"spec": {"holderIdentity": "another"}})
        await operator.reach(operator.process.done)


@reports("operator-lease-lost", answer="the operator ends with `Leaderelection lost`")
async def test_a_lost_lease_is_one_error(tmp_path):
    """Not a group of errors, which the command would show as a traceback."""
    with pytest.raises(LeaseLostError, match="Leaderelection lost"):
        await lose_the_lease(tmp_path)


@asynccontextmanager
async def refusing():
    """An API server that answers 503, whatever it is asked; gives its URL."""

    async def serve(reader, writer):
        while True:
            await read_request(reader)
            writer.write(answer(503, b"{}"))

    async with raw_server(serve) as server:
        yield server.url


@reports(
    "operator-away",
    log="`watch interrupted`, once for a kind and cause; `not listed yet`, once in a minute",
    answer="`/readyz`: `not everything is listed yet`",
)
@reports(
    "operator-version-unknown", log="`not known which Kubernetes the API server is of`; `not known whether`"
)
async def test_an_api_server_that_does_not_answer(caplog, monkeypatch):
    """Each kind is said once with its cause, the operator is not ready, and it goes on trying."""
    monkeypatch.setattr("berth.operator.process.SYNC_SECONDS", 0.01)
    caplog.set_level("WARNING", logger="berth")
    settings = OperatorSettings(SchedulerDefaults("i"), port=0)
    async with refusing() as url, transport_to(url) as transport, asyncio.TaskGroup() as tasks:
        operator = Operator(settings, transport, Api(transport), Api(transport), tasks=tasks)
        stop = asyncio.Event()
        running = tasks.create_task(operator.until(stop))
        await eventually(lambda: "not listed yet kind=" in caplog.text)
        assert (False, False) == (await operator._ask_version(), await operator._look_for_monitors())
        assert {"sync": "not everything is listed yet"} == {
            name: check() for name, check in operator.ready_checks().items()
        }
        stop.set()
        await running
        await operator.finish()

    assert 1 == caplog.text.count("watch interrupted resource=schedulers err=503")
    assert "not known which Kubernetes the API server is of err=503" in caplog.text
    assert "not known whether a kind exists kind=servicemonitors err=503" in caplog.text
