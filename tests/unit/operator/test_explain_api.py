"""The APIService of explanations is there while a ready scheduler is behind it, and only then."""

from base64 import b64decode

import pytest

from berth.client.errors import ServerError
from berth.operator.explain_api import UNREACHABLE_SECONDS, WITHDRAWN_SECONDS, ExplainApi
from berth.operator.kinds import KEPT
from berth.operator.metrics import OperatorMetrics
from berth.operator.observed import ClusterView
from berth.operator.rendering import SchedulerDefaults
from tests.failures.reporting import reports
from tests.unit.explaining_at_work import SERVICE, api_service
from tests.unit.operator import kit
from tests.unit.operator.at_work import SCHEDULERS, SYSTEM, installed, operating, operator

NAME = "v1alpha1.explain.berth.dev"
PODS = f"/api/v1/namespaces/{SYSTEM}/pods"


def service(work):
    return work.objects("apiservices.apiregistration.k8s.io").get(NAME)


async def serving(work, *names):
    """Schedulers are ready, and the APIService is there."""
    for name in names:
        await work.send("POST", SCHEDULERS, kit.scheduler(name, profiles=[{"schedulerName": name}]))
    await work.reach(lambda: service(work))


async def test_comes_and_goes(tmp_path):
    """It comes with the first ready scheduler and goes with the last one, whatever Scheduler that is of."""
    async with operating(tmp_path, explain_service=SERVICE) as work:
        assert None is service(work)
        await serving(work, "one", "two")
        found = service(work)
        spec, (owner,) = found["spec"], found["metadata"]["ownerReferences"]
        authority = work.objects("configmaps")["berth-operator-ca"]["data"]["ca.crt"]
        assert authority == b64decode(spec["caBundle"]).decode()
        assert {"name": SERVICE, "namespace": SYSTEM, "port": 443} == spec["service"]
        assert ("ClusterRole", "berth-scheduler") == (owner["kind"], owner["name"])

        await work.send("DELETE", f"{SCHEDULERS}/one")
        await work.reach(lambda: "berth-one" not in work.objects("deployments.apps"))
        await work.reach(lambda: not [name for name in work.objects("pods") if "berth-one" in name])
        assert service(work)
        await work.send("PATCH", f"{SCHEDULERS}/two", {"spec": {"replicas": 0}})
        await work.reach(lambda: not service(work))
        await work.send("PATCH", f"{SCHEDULERS}/two", {"spec": {"replicas": 1}})
        await work.reach(lambda: service(work))

    assert [] == work.ledger.denied


async def test_goes_with_the_operator(tmp_path):
    """An operator that ends takes it away, since nothing would with the last scheduler; the next makes it."""
    async with installed(tmp_path) as work:
        async with operator(tmp_path, work, explain_service=SERVICE):
            await serving(work, "main")
        assert None is service(work)
        async with operator(tmp_path, work, explain_service=SERVICE):
            await work.reach(lambda: service(work))


async def test_switched_off(tmp_path):
    """Without a Service the operator takes away what it made before, and leaves alone what it did not."""
    (foreign, _) = api_service("theirs")
    managed = {
        **foreign,
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/managed-by": "berth-operator"}},
    }
    async with operating(tmp_path, more=[managed]) as work:
        await work.reach(lambda: not service(work))
    async with operating(tmp_path, more=[foreign]) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Available")[0] == "True")
        assert service(work)


async def test_made_again(tmp_path):
    """What is deleted or changed by hand is put right."""
    async with operating(tmp_path, explain_service=SERVICE) as work:
        await serving(work, "main")
        path, uid = f"/apis/apiregistration.k8s.io/v1/apiservices/{NAME}", service(work)["metadata"]["uid"]
        await work.send("DELETE", path)
        await work.reach(lambda: service(work) and service(work)["metadata"]["uid"] != uid)
        await work.send("PATCH", path, {"spec": {"caBundle": ""}})
        await work.reach(lambda: service(work)["spec"].get("caBundle"))


async def test_earlier_installation(tmp_path):
    """One that was installed beside the operator, by earlier versions, is taken over."""
    async with operating(tmp_path, explain_service=SERVICE, more=api_service("old")) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        old = api_service("old")[0]["spec"]["caBundle"]
        await work.reach(lambda: service(work) and service(work)["spec"]["caBundle"] != old)


class Calls:
    """A mock of the API: what is written, in order. No API server fails to reach a pod on demand."""

    def __init__(self):
        self.made = []

    async def delete(self, _resource, _namespace, name, _body):
        self.made.append(("DELETE", name))

    async def get(self, _resource, _namespace, _name):
        return b'{"metadata": {"uid": "u"}}'

    async def call(self, method, _path, body, **_options):
        self.made.append((method, NAME))
        return body


@pytest.fixture
def kept():
    """An ExplainApi with a ready scheduler, a clock, what it asked of the API, and what it said."""
    observed, calls, said, clock = ClusterView(lambda _key: None, tuple(KEPT)), Calls(), [], [0.0]
    labels = {"app.kubernetes.io/name": "berth-scheduler"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    observed.pods.on_add({"metadata": {"name": "p", "namespace": SYSTEM, "labels": labels}, "status": ready})
    authority = {"name": "berth-operator-ca", "namespace": SYSTEM}
    observed.published.on_add({"metadata": authority, "data": {"ca.crt": "ca"}})
    made = ExplainApi(
        calls,
        observed,
        OperatorMetrics(),
        lambda kind, reason, note: said.append((kind, reason, note)),
        namespace=SYSTEM,
        settings=SchedulerDefaults("i", explain_service=SERVICE),
        monotonic=lambda: clock[0],
    )
    return made, observed, clock, calls.made, said


def report(observed, status):
    """The API server says whether it reaches a scheduler."""
    found = observed.api_services.objects["", NAME]
    condition = {
        "type": "Available",
        "status": status,
        "reason": "FailedDiscoveryCheck",
        "message": "timeout",
    }
    observed.api_services.on_update(found, {**found, "status": {"conditions": [condition]}})


@reports(
    "explanations-not-served",
    event="`ExplanationsNotServed` of each Scheduler, with the cause",
    metric="`berth_operator_explain_api_unreachable`",
    log="`explanations are not served through the API server`, once for a cause",
)
async def test_unreachable(kept, caplog):
    """Where the API server cannot reach ready schedulers it is withdrawn, with an event, and tried later."""
    made, observed, clock, calls, said = kept
    await made.keep()
    report(observed, "False")
    await made.keep()
    clock[0] += UNREACHABLE_SECONDS - 1
    await made.keep()
    assert [("PATCH", NAME)] == calls
    assert b"berth_operator_explain_api_unreachable{" in made._metrics.text()

    clock[0] += 1
    await made.keep()
    assert [("PATCH", NAME), ("DELETE", NAME)] == calls
    observed.api_services.on_delete(observed.api_services.objects["", NAME])
    await made.keep()
    assert 2 == len(calls)
    ((kind, reason, note),) = said
    assert ("Warning", "ExplanationsNotServed") == (kind, reason)
    assert "FailedDiscoveryCheck: timeout" in note
    assert [f"explanations are not served through the API server err={note}"] == caplog.messages

    clock[0] += WITHDRAWN_SECONDS
    await made.keep()
    assert ("PATCH", NAME) == calls[-1]


async def test_reached_in_time(kept):
    """A while in which it was not reached counts from its own beginning."""
    made, observed, clock, calls, said = kept
    await made.keep()
    for status in ("False", "True", "False"):
        report(observed, status)
        await made.keep()
        clock[0] += UNREACHABLE_SECONDS - 1
    await made.keep()

    assert ([("PATCH", NAME)], []) == (calls, said)


@reports(
    "explanations-not-withdrawn", log="`not withdrawn`, with the cause; it goes with the role that owns it"
)
async def test_an_end_at_which_it_can_not_be_deleted(kept, caplog):
    """What keeps it is logged, and the operator ends."""
    made, _, _, _, _ = kept
    await made.keep()

    async def broken(*_):
        raise ServerError(503, "ServiceUnavailable", "no")

    made._api.delete = broken
    await made.withdraw()

    assert [f"not withdrawn apiservice={NAME} err=503 ServiceUnavailable: no"] == caplog.messages
