"""Who may do what: tokens, roles and bindings, and what is said to those who may not."""

import pytest

from berth.sandbox.access import AccessGate
from berth.sandbox.access.default_roles import default_roles
from berth.sandbox.access.identity import Tokens, service_account
from berth.sandbox.access.rbac import Rbac
from berth.sandbox.api import SandboxApi
from berth.sandbox.attributes import SandboxUser
from tests.unit.sandbox.conftest import Server

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
GROUP = "rbac.authorization.k8s.io"
ROBOT = service_account("default", "robot")


class Guarded(Server):
    """The API with RBAC; requests come from the administrator unless a token says otherwise."""

    def __init__(self):
        super().__init__()
        self.tokens, self.denied = Tokens(), []
        gate = AccessGate(self.tokens, Rbac(self.store), self._note)
        self.api = SandboxApi(self.store, lambda: self.now, gate)
        self.use(self.tokens.administrator)
        for document in default_roles():
            self.post(f"{RBAC}/{document['kind'].lower()}s", document)

    def use(self, token):
        """Send this token from now on."""
        self.headers = {"authorization": f"Bearer {token}"} if token else {}

    def acting(self, user):
        """Act as that user from now on."""
        self.use(self.tokens.issue(user))
        return self

    def _note(self, _user, asked):
        self.denied.append(str(asked))


@pytest.fixture
def api():
    return Guarded()


def rule(verbs, *resources, group="", **more):
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": list(resources), **more}


def allow(api, *rules, namespace="", kind="ServiceAccount", name="robot"):
    """Give the robot these rules, in a namespace or everywhere."""
    api.use(api.tokens.administrator)
    subject = {"kind": kind, "name": name, "namespace": "default"}
    role = f"r{len(api.store.collection(f'clusterroles.{GROUP}'))}"
    head = {"metadata": {"name": role}, "subjects": [subject]}
    if namespace:
        api.post(f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": role}, "rules": list(rules)})
        reference = {"apiGroup": GROUP, "kind": "Role", "name": role}
        status, made = api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", {**head, "roleRef": reference})
    else:
        api.post(f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": list(rules)})
        reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
        status, made = api.post(f"{RBAC}/clusterrolebindings", {**head, "roleRef": reference})
    assert 201 == status, made
    return api.acting(ROBOT)


def test_an_unknown_token(api):
    """A token of no user is refused; without one only health and version are served."""
    api.use("stolen")
    assert 401 == api.get(PODS)[0]

    api.use("")
    assert (403, 403) == (api.get(PODS)[0], api.get("/apis")[0])
    assert "system:anonymous" in api.get(PODS)[1]["message"]


@pytest.mark.parametrize(
    ("rules", "method", "path", "status"),
    [
        pytest.param([rule("get list", "pods")], "GET", PODS, 200, id="list"),
        pytest.param([rule("get", "pods")], "GET", PODS, 403, id="get is not list"),
        pytest.param([rule("*", "pods")], "DELETE", PODS, 200, id="all verbs"),
        pytest.param([rule("list", "*")], "GET", PODS, 200, id="all resources"),
        pytest.param([rule("list", "pods", group="apps")], "GET", PODS, 403, id="another group"),
        pytest.param([rule("get", "pods", resourceNames=["a"])], "GET", f"{PODS}/a", 404, id="by name"),
        pytest.param([rule("get", "pods", resourceNames=["a"])], "GET", f"{PODS}/b", 403, id="another name"),
        pytest.param([rule("create", "pods")], "POST", f"{PODS}/a/binding", 403, id="not a subresource"),
        pytest.param([rule("create", "pods/binding")], "POST", f"{PODS}/a/binding", 400, id="a subresource"),
        pytest.param([rule("patch", "*/status")], "PATCH", f"{PODS}/a/status", 404, id="that of all"),
    ],
)
def test_rules(api, rules, method, path, status):
    """A request passes exactly when a rule has its verb, group, resource and name."""
    allow(api, *rules)
    body = {} if method in ("POST", "PATCH") else None

    found = api.call(
        method, path, body, "application/merge-patch+json" if method == "PATCH" else "application/json"
    )
    assert status == found[0], found


def test_namespace(api):
    """A role holds in its own namespace, and nowhere else."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    allow(api, rule("list", "pods"), namespace="default")

    assert 200 == api.get(PODS)[0]
    status, answer = api.get("/api/v1/namespaces/other/pods")
    text = (
        'pods is forbidden: User "system:serviceaccount:default:robot" cannot list resource "pods" in API '
        'group "" in the namespace "other"'
    )
    assert (403, text) == (status, answer["message"])
    assert api.get("/api/v1/pods")[1]["message"].endswith("at the cluster scope")


def test_apply_creates(api):
    """An apply of what is not there yet needs the right to create, too."""
    role = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {}}
    path = "/api/v1/namespaces/default/configmaps/c"
    allow(api, rule("patch", "configmaps"))

    assert 403 == api.patch(path, role, "apply", fieldManager="me")[0]
    assert ['create resource "configmaps" in API group "" in the namespace "default"'] == api.denied


def test_aggregated(api):
    """An aggregating role has the rules of the roles with its label."""
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    api.post(
        f"{RBAC}/clusterroles",
        {"metadata": {"name": "more", "labels": label}, "rules": [rule("list", "pods")]},
    )
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}
    subject = {"kind": "User", "name": "eve"}
    api.post(
        f"{RBAC}/clusterrolebindings",
        {"metadata": {"name": "e"}, "roleRef": reference, "subjects": [subject]},
    )
    api.acting(SandboxUser("eve"))

    assert (200, 403) == (api.get(PODS)[0], api.delete(PODS)[0])


@pytest.mark.parametrize(
    ("extra", "status"),
    [
        pytest.param([], 403, id="more than one has"),
        pytest.param([rule("list", "secrets")], 201, id="what one has"),
        pytest.param([rule("bind", "clusterroles", group=GROUP, resourceNames=["reader"])], 201, id="bind"),
        pytest.param(
            [rule("bind", "clusterroles", group=GROUP, resourceNames=["other"])], 403, id="bind another"
        ),
    ],
)
def test_escalation(api, extra, status):
    """Users bind no role with more rights than they have, unless they may bind that role."""
    api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "reader"}, "rules": [rule("list", "secrets")]})
    allow(api, rule("create", "clusterrolebindings", group=GROUP), *extra)
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "reader"}

    found = api.post(f"{RBAC}/clusterrolebindings", {"metadata": {"name": "x"}, "roleRef": reference})
    assert status == found[0]


def test_escalating_role(api):
    """Users write no role with more rights than they have."""
    allow(api, rule("create", "clusterroles", group=GROUP), rule("list", "pods"))

    made = api.post(
        f"{RBAC}/clusterroles", {"metadata": {"name": "x"}, "rules": [rule("list", "pods", "secrets")]}
    )
    assert 403 == made[0]
    assert 'Resources:["secrets"], Verbs:["list"]' in made[1]["message"]
    assert 'Resources:["pods"]' not in made[1]["message"]


def test_claim_status(api):
    """Who writes what a resource claim is allocated needs the right to bind claims."""
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/status"
    allow(api, rule("patch", "resourceclaims/status", group="resource.k8s.io"))
    assert 'resource "resourceclaims/binding"' in api.patch(path, {})[1]["message"]

    allow(api, rule("patch", "resourceclaims/binding", group="resource.k8s.io"))
    assert 404 == api.patch(path, {})[0]


def test_reviews(api):
    """Reviews answer by the same rules: of a token, of oneself, of others."""
    api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    token = api.post(path, {"spec": {}})[1]["status"]["token"]
    of_token = api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})[1]
    spec = {"user": ROBOT.name, "resourceAttributes": {"verb": "list", "resource": "pods"}}
    accesses = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    before = api.post(accesses, {"spec": spec})[1]["status"]["allowed"]
    allow(api, rule("list", "pods"))
    api.use(api.tokens.administrator)
    after = api.post(accesses, {"spec": spec})[1]["status"]["allowed"]
    stolen = api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})[1]

    assert ROBOT.name == of_token["status"]["user"]["username"]
    assert (False, True, False) == (before, after, stolen["status"]["authenticated"])


def test_self_review(api):
    """Everybody may ask what they themselves may."""
    allow(api, rule("list", "pods"))
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    def may(verb):
        attributes = {"verb": verb, "resource": "pods", "namespace": "default"}
        return api.post(path, {"spec": {"resourceAttributes": attributes}})[1]["status"]["allowed"]

    assert (True, False) == (may("list"), may("delete"))


@pytest.mark.parametrize(("verbs", "status"), [("patch", 403), ("patch delete", 200)])
def test_owner_change(api, verbs, status):
    """Who may not delete an object may not say what it goes with either; other changes are as before."""
    maps = "/api/v1/namespaces/default/configmaps"
    api.post(maps, {"metadata": {"name": "a"}})
    allow(api, rule(verbs, "configmaps"))
    api.acting(ROBOT)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "u"}

    assert 200 == api.patch(f"{maps}/a", {"data": {"x": "1"}})[0]
    assert status == api.patch(f"{maps}/a", {"metadata": {"ownerReferences": [owner]}})[0]
