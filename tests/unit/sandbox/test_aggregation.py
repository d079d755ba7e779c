"""APIServices: requests that go on to other servers, and what is said of those that do not answer."""

import socket
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from berth.aggregated_api.front_proxy import read_trust
from berth.aggregated_api.kinds import ROOT
from berth.aggregated_api.pages import ExplainPages
from berth.operator.certificates import Authorities
from berth.sandbox import SandboxOptions, serve
from berth.sandbox.attributes import SandboxUser
from berth.serving.access import Access
from berth.serving.endpoints import Endpoints, SecureServer
from berth.serving.serving_certificate import context_of
from tests.unit.explaining_at_work import (
    SERVICE,
    api_service,
    ask,
    available,
    explanation,
    slice_of,
)
from tests.unit.sandbox.conftest import Server
from tests.unit.scheduler_at_work import eventually

NAME = "v1alpha1.explain.berth.dev"
PATH = f"/apis/apiregistration.k8s.io/v1/apiservices/{NAME}"
CHECKER = "system:kube-aggregator"
JANE = SandboxUser("jane", ("devs", "system:authenticated"), "7")


class Aggregated:
    """A sandbox with RBAC, the authority of the server behind it, and who that server was asked by."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.authorities = Authorities().renewed(datetime.now(UTC))
        self.users = []

    def load(self, *documents):
        """Create objects, the APIService and its Service included."""
        namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "berth-system"}}
        self.sandbox.load([namespace, *api_service(self.authorities.bundle()), *documents])

    def condition(self):
        """Give status and reason of the APIService."""
        entry = self.sandbox.store.collection("apiservices.apiregistration.k8s.io").get(NAME)
        conditions = (entry.decode().get("status") or {}).get("conditions") or [{}]
        return conditions[0].get("status"), conditions[0].get("reason")

    async def review(self, asked):
        """Allow a user that the front proxy names; its own checks are not noted."""
        if asked.user is None or asked.user.username != CHECKER:
            self.users.append(asked.user)
        return Access("", allowed=asked.user is not None)

    @asynccontextmanager
    async def serving(self, *names):
        """The server behind, with a certificate for these names; gives its port."""
        config = self.sandbox.store.collection("configmaps").get(
            "kube-system/extension-apiserver-authentication"
        )
        trust = read_trust(config.decode()["data"])
        pair = self.authorities.signer(datetime.now(UTC)).issue(names, datetime.now(UTC))
        context = context_of(*pair, trust.pem)
        endpoints = Endpoints(
            lambda _: b"", self.explain, dict, explanations=ExplainPages(self.explain).mount
        )
        listener = socket.create_server(("127.0.0.1", 0))
        server = await SecureServer.start(
            listener, lambda: context, endpoints, review=self.review, clients=trust.user
        )
        try:
            yield server.port
        finally:
            await server.close()

    async def explain(self, asked, *, was_sent_on):
        """Give the name back."""
        del was_sent_on
        return {"pod": asked.name, "query": asked.query}


@pytest.fixture
async def aggregated():
    async with await serve(SandboxOptions(rbac=True)) as sandbox:
        yield Aggregated(sandbox)


async def test_the_user_goes_along(aggregated):
    """The server behind learns who asks from this one alone."""
    async with aggregated.serving(f"{SERVICE}.berth-system.svc") as port:
        aggregated.load(slice_of(0, port))
        await eventually(lambda: available(aggregated))
        root = aggregated.sandbox.access.issue(SandboxUser("root", ("system:masters",)))
        path = f"{explanation('default', 'p')}?allReasons=true"
        code, document = await ask(aggregated.sandbox.url, path, root, **{"X-Remote-User": "forged"})

    assert (200, "p", {"allReasons": "true"}) == (code, document["pod"], document["query"])
    assert ["root"] == [user.username for user in aggregated.users]


async def test_uid_and_groups(aggregated):
    """All that is known of the user goes along."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    rule = {"apiGroups": ["explain.berth.dev"], "resources": ["podexplanations"], "verbs": ["get"]}
    subjects = [{"kind": "Group", "name": "devs"}]
    binding = {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects}
    async with aggregated.serving(f"{SERVICE}.berth-system.svc") as port:
        aggregated.load(slice_of(0, port), {**role, "rules": [rule]}, binding)
        await eventually(lambda: available(aggregated))
        await ask(aggregated.sandbox.url, explanation("default", "p"), aggregated.sandbox.access.issue(JANE))

    assert [("jane", "7", JANE.groups)] == [(one.username, one.uid, one.groups) for one in aggregated.users]


async def test_who_may_not_is_refused_here(aggregated):
    """The server behind is not asked."""
    async with aggregated.serving(f"{SERVICE}.berth-system.svc") as port:
        aggregated.load(slice_of(0, port))
        await eventually(lambda: available(aggregated))
        code, _ = await ask(
            aggregated.sandbox.url, explanation("default", "p"), aggregated.sandbox.access.issue(JANE)
        )

    assert (403, []) == (code, aggregated.users)


async def test_discovery_shows_what_is_served(aggregated):
    """While there is an APIService its group stands among the others, and not after."""
    root = aggregated.sandbox.access.issue(SandboxUser("root", ("system:masters",)))

    async def groups():
        _, found = await ask(aggregated.sandbox.url, "/apis", root)
        return [one["name"] for one in found["groups"]]

    before = await groups()
    async with aggregated.serving(f"{SERVICE}.berth-system.svc") as port:
        aggregated.load(slice_of(0, port))
        await eventually(lambda: available(aggregated))
        during, (_, listed) = await groups(), await ask(aggregated.sandbox.url, ROOT, root)
    services = aggregated.sandbox.api.catalogue.by_kind("apiregistration.k8s.io/v1", "APIService")
    aggregated.sandbox.store.collection(services.store_name).delete(NAME, {"metadata": {"name": NAME}})
    await eventually(lambda: aggregated.sandbox.api.catalogue.by_kind(ROOT[6:], "Explanation") is None)

    assert ["explain.berth.dev"] == sorted(set(during) - set(before))
    assert "APIResourceList" == listed["kind"]
    assert before == await groups()


async def test_without_endpoints(aggregated):
    """The condition says what is missing, and requests are answered with 503."""
    aggregated.load()
    await eventually(lambda: aggregated.condition() == ("False", "MissingEndpoints"))
    root = aggregated.sandbox.access.issue(SandboxUser("root", ("system:masters",)))
    code, status = await ask(aggregated.sandbox.url, explanation("default", "p"), root)

    assert (503, f'no endpoints available for service "{SERVICE}"') == (code, status["message"])


async def test_a_server_of_another_name(aggregated):
    """A certificate for another name is not trusted."""
    async with aggregated.serving("other.berth-system.svc") as port:
        aggregated.load(slice_of(0, port))
        await eventually(lambda: aggregated.condition() == ("False", "FailedDiscoveryCheck"))

    assert [] == aggregated.users


async def test_no_such_service(aggregated):
    document, _ = api_service(aggregated.authorities.bundle())
    aggregated.sandbox.load([document])
    await eventually(lambda: aggregated.condition() == ("False", "ServiceNotFound"))

    assert [] == aggregated.users


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"version": "v1"}, "metadata.name"),
        ({"insecureSkipTLSVerify": True}, "spec.insecureSkipTLSVerify"),
        ({"versionPriority": 0}, "spec.versionPriority"),
    ],
)
def test_invalid(changes, text):
    """A wrong name, two ways to verify at once, no priority: each field is named."""
    document, _ = api_service("authority")
    document["spec"] |= changes
    code, status = Server().post(PATH.removesuffix(f"/{NAME}"), document)

    assert 422 == code
    assert text in status["message"]
