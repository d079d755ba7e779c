"""The APIService trusts what schedulers serve with."""

from base64 import b64decode

from berth.client import Api, load_endpoint
from berth.operator.explain_api import ExplainApi
from tests.unit.client.conftest import transport_to
from tests.unit.explaining_at_work import api_service
from tests.unit.operator.rights import bound, documents, granted, guarded

COMPONENT = "../components/explain-api"
NAME = "v1alpha1.explain.berth.dev"


def service(sandbox):
    return sandbox.store.collection("apiservices.apiregistration.k8s.io").get(NAME)


async def test_the_authority_is_kept(tmp_path):
    """It is written where it differs, under the rights of the component, all of which are needed."""
    rights = documents(f"{COMPONENT}/rights.yaml")
    (role,) = [one for one in rights if one["kind"] == "ClusterRole"]
    async with guarded(tmp_path, "berth-system", "berth-operator") as (sandbox, ledger, kubeconfig):
        sandbox.load([*rights, *api_service("old")])
        async with transport_to(load_endpoint(kubeconfig=str(kubeconfig), environ={})) as transport:
            kept = ExplainApi(Api(transport), "berth-explain")
            await kept.keep("new")
            written = service(sandbox).revision
            await kept.keep("new")

    assert b"new" == b64decode(service(sandbox).decode()["spec"]["caBundle"])
    assert written == service(sandbox).revision
    assert [] == ledger.denied
    assert set() == ledger.spare([role])
    assert granted([role])


async def test_without_an_api_service(tmp_path):
    """What is not installed is not made; without a Service of its own nothing is looked for."""
    async with guarded(tmp_path, "berth-system", "berth-operator") as (sandbox, ledger, kubeconfig):
        sandbox.load([bound("cluster-admin", ledger.user)])
        async with transport_to(load_endpoint(kubeconfig=str(kubeconfig), environ={})) as transport:
            await ExplainApi(Api(transport), "berth-explain").keep("new")
            looked = len(ledger.used)
            await ExplainApi(Api(transport), "").keep("new")

    assert None is service(sandbox)
    assert (1, 1) == (looked, len(ledger.used))
