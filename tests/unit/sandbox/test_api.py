import pytest

from berth.sandbox import meta
from tests.unit.sandbox.conftest import PODS, events

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"


def config_map(name="a", **fields):
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, **fields}


def names(document):
    return [item["metadata"]["name"] for item in document["items"]]


def test_create_and_read(server):
    """What is created can be read, with what the server adds."""
    status, created = server.post(CONFIG_MAPS, config_map(data={"k": "v"}))

    assert 201 == status
    assert (200, created) == server.get(f"{CONFIG_MAPS}/a")
    assert {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} == created["metadata"].keys()
    assert "2023-11-14T22:13:20Z" == created["metadata"]["creationTimestamp"]


def test_exists(server):
    """A name is taken once."""
    server.post(CONFIG_MAPS, config_map())
    status, answer = server.post(CONFIG_MAPS, config_map())

    assert (409, "AlreadyExists", 'configmaps "a" already exists') == (
        status,
        answer["reason"],
        answer["message"],
    )


def test_missing(server):
    """What is not there is named, with its group."""
    status, answer = server.get("/apis/apps/v1/namespaces/default/deployments/x")

    assert (404, 'deployments.apps "x" not found') == (status, answer["message"])
    assert {"name": "x", "group": "apps", "kind": "deployments"} == answer["details"]


def test_missing_namespace(server):
    """Nothing is created in a namespace that is not there."""
    status, answer = server.post("/api/v1/namespaces/nowhere/configmaps", config_map())

    assert (404, 'namespaces "nowhere" not found') == (status, answer["message"])


def test_generated_name(server):
    """generateName becomes a name with a suffix."""
    _, created = server.post(CONFIG_MAPS, {"metadata": {"generateName": "a-"}})

    assert created["metadata"]["name"].startswith("a-")
    assert len("a-") + 5 == len(created["metadata"]["name"])


def test_a_generated_name_is_free(server, monkeypatch):
    """A name that an object has already is not taken; after eight tries the client is told."""
    names = iter(["a-1", "a-1", "a-2", *["a-1"] * 8])
    monkeypatch.setattr(meta, "generated_name", lambda _: next(names))
    created = [server.post(CONFIG_MAPS, {"metadata": {"generateName": "a-"}}) for _ in range(3)]

    assert ["a-1", "a-2"] == [answer["metadata"]["name"] for _, answer in created[:2]]
    assert (409, "AlreadyExists") == (created[2][0], created[2][1]["reason"])


def test_optimistic_concurrency(server):
    """An update made from an old revision is a conflict, in upstream's words."""
    _, old = server.post(CONFIG_MAPS, config_map())
    server.put(f"{CONFIG_MAPS}/a", {**old, "data": {"k": "1"}})
    status, answer = server.put(f"{CONFIG_MAPS}/a", {**old, "data": {"k": "2"}})

    expected = (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert (409, expected) == (status, answer["message"])


def test_unchanged(server):
    """An update that changes nothing is not a new revision."""
    _, old = server.post(CONFIG_MAPS, config_map(data={"k": "v"}))

    assert (200, old) == server.put(f"{CONFIG_MAPS}/a", old)


def test_finalizers(server):
    """A deleted object stays until its last finalizer goes."""
    server.post(CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": ["x.io/y"]}})
    server.delete(f"{CONFIG_MAPS}/a")

    assert "deletionTimestamp" in server.get(f"{CONFIG_MAPS}/a")[1]["metadata"]
    server.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})
    assert 404 == server.get(f"{CONFIG_MAPS}/a")[0]


def test_generation(server):
    """generation counts changes of spec, not of status or metadata."""
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    server.post(path, {"metadata": {"name": "a"}, "spec": {"minAvailable": 1}})
    server.patch(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})
    server.patch(f"{path}/a/status", {"status": {"disruptionsAllowed": 1}})

    assert 1 == server.get(f"{path}/a")[1]["metadata"]["generation"]
    assert 2 == server.patch(f"{path}/a", {"spec": {"minAvailable": 2}})[1]["metadata"]["generation"]


def test_dry_run(server):
    """A dry run answers as if, and stores nothing."""
    assert 201 == server.post(CONFIG_MAPS, config_map(), dryRun="All")[0]
    assert 404 == server.get(f"{CONFIG_MAPS}/a")[0]


def test_delete_collection(server):
    """A collection is deleted by selector."""
    for name, app in (("a", "x"), ("b", "y")):
        server.post(CONFIG_MAPS, {"metadata": {"name": name, "labels": {"app": app}}})
    server.delete(CONFIG_MAPS, labelSelector="app=x")

    assert ["b"] == names(server.get(CONFIG_MAPS)[1])


def test_selectors(server):
    """Pods are listed by label and by field."""
    for name in ("a", "b", "c"):
        server.pod(name, labels={"app": name})
    server.bind("a")

    assert ["a"] == names(server.get(PODS, fieldSelector="spec.nodeName=n1")[1])
    assert ["b", "c"] == names(server.get("/api/v1/pods", fieldSelector="spec.nodeName=")[1])
    assert ["b"] == names(server.get(PODS, labelSelector="app in (a,b)", fieldSelector="metadata.name!=a")[1])


def test_unknown_field_selector(server):
    """A field that cannot be selected by is refused in upstream's words."""
    status, answer = server.get(PODS, fieldSelector="spec.color=red")

    assert 400 == status
    assert answer["message"].endswith("field label not supported: spec.color")


def test_pages(server):
    """Pages make up the list at the revision of the first one, whatever is written in between."""
    for name in "abcde":
        server.post(CONFIG_MAPS, config_map(name))
    _, page = server.get(CONFIG_MAPS, limit=2)
    revision, seen = page["metadata"]["resourceVersion"], names(page)
    server.post(CONFIG_MAPS, config_map("aa"))
    server.delete(f"{CONFIG_MAPS}/d")
    while page["metadata"].get("continue"):
        _, page = server.get(CONFIG_MAPS, limit=2, **{"continue": page["metadata"]["continue"]})
        seen += names(page)
        assert revision == page["metadata"]["resourceVersion"]

    assert list("abcde") == seen


def test_watch_from_list(server):
    """A watch from a list's revision says what happened since."""
    server.post(CONFIG_MAPS, config_map("a"))
    _, listed = server.get(CONFIG_MAPS)
    watch = server.watch(CONFIG_MAPS, resourceVersion=listed["metadata"]["resourceVersion"])
    server.post(CONFIG_MAPS, config_map("b"))
    server.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
    server.delete(f"{CONFIG_MAPS}/b")

    reported = [(kind, obj["metadata"]["name"]) for kind, obj in events(watch)]
    assert [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")] == reported


def test_watch_from_nothing(server):
    """A watch without a revision starts with what there is."""
    server.post(CONFIG_MAPS, config_map("a"))

    assert [("ADDED", "a")] == [
        (kind, o["metadata"]["name"]) for kind, o in events(server.watch(CONFIG_MAPS))
    ]


def test_watch_list(server):
    """sendInitialEvents ends with a bookmark that says so."""
    server.post(CONFIG_MAPS, config_map("a"))
    query = {
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    (first, _), (second, mark) = events(server.watch(CONFIG_MAPS, **query))

    assert ("ADDED", "BOOKMARK") == (first, second)
    assert "true" == mark["metadata"]["annotations"]["k8s.io/initial-events-end"]


def test_watch_list_while_writing(server):
    """The bookmark behind the first objects is as of them: a watch resumed from there misses nothing."""
    server.post(CONFIG_MAPS, config_map("a"))
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true"}
    stream = server.watch(CONFIG_MAPS, **query)
    server.post(CONFIG_MAPS, config_map("late"))
    _, (_, mark) = events(stream)

    missed = events(server.watch(CONFIG_MAPS, resourceVersion=mark["metadata"]["resourceVersion"]))
    assert ["late"] == [each["metadata"]["name"] for _, each in missed]


def test_watch_by_selector(server):
    """An object that comes into a selector's sight is ADDED, one that leaves it DELETED."""
    server.pod()
    watch = server.watch(PODS, fieldSelector="spec.nodeName=n1", resourceVersion=server.store.revision)
    server.bind()
    server.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
    server.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})

    assert ["ADDED", "MODIFIED", "MODIFIED", "DELETED"] == [kind for kind, _ in events(watch)]


def test_watch_unscheduled(server):
    """A pod that is bound leaves the sight of a watch on unbound pods, at the revision of the binding."""
    server.pod()
    watch = server.watch(PODS, fieldSelector="spec.nodeName=", resourceVersion=server.store.revision)
    server.bind()

    ((kind, pod),) = events(watch)
    assert ("DELETED", str(server.store.revision)) == (kind, pod["metadata"]["resourceVersion"])


def test_watch_too_old(small_history):
    """A revision that the history no longer has is answered 410 at the start."""
    for name in "abcd":
        small_history.post(CONFIG_MAPS, config_map(name))

    status, answer = small_history.watch(CONFIG_MAPS, resourceVersion=1)

    assert (410, "Expired") == (status, answer["reason"])


def test_watch_falls_behind(small_history):
    """A watch whose position is trimmed away ends with an error event of code 410."""
    watch = small_history.watch(CONFIG_MAPS, resourceVersion=small_history.store.revision)
    for name in "abcd":
        small_history.post(CONFIG_MAPS, config_map(name))

    ((kind, status),) = events(watch)
    assert ("ERROR", 410, True) == (kind, status["code"], watch.finished)


def test_watch_future(server):
    """A revision that is not reached yet is answered 504, to be tried again."""
    status, answer = server.watch(CONFIG_MAPS, resourceVersion=999)

    assert 504 == status
    assert "Too large resource version" in answer["message"]


def test_protobuf(server):
    """A body in protobuf is read; one of a type that is not known so is answered 415."""
    known = b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x11\n\x05\n\x01a\x42\x00\x12\x08\n\x02ka\x12\x02vb"
    status, made = server.call("POST", CONFIG_MAPS, known, "application/vnd.kubernetes.protobuf")

    assert (201, "a", {"ka": "vb"}) == (status, made["metadata"]["name"], made["data"])
    other = known.replace(b"ConfigMap", b"Endpoints")
    assert 415 == server.call("POST", CONFIG_MAPS, other, "application/vnd.kubernetes.protobuf")[0]


def test_unknown_format(server):
    """A body in an unknown format is answered 415."""
    assert 415 == server.call("POST", CONFIG_MAPS, b"k8s\0", "application/vnd.kubernetes.avro")[0]


def test_strict_fields(server):
    """An unknown field is an error when the client is strict, a warning by default, and never stored."""
    body = config_map(colour="red")

    status, answer = server.post(CONFIG_MAPS, body, fieldValidation="Strict")
    assert (400, True) == (status, 'unknown field "colour"' in answer["message"])
    status, created = server.post(CONFIG_MAPS, body)
    assert (201, False) == (status, "colour" in created)
    assert ['unknown field "colour"'] == server.request.warnings


def test_wrong_type(server):
    """A field of the wrong type is refused, with the field named."""
    status, answer = server.post(CONFIG_MAPS, config_map(data={"k": 1}))

    assert 400 == status
    assert "json: cannot unmarshal number into Go struct field" in answer["message"]


@pytest.mark.parametrize(
    ("name", "label", "field"),
    [("A", "x", "metadata.name"), ("a", "-", "metadata.labels"), ("", "x", "metadata.name")],
)
def test_bad_metadata(server, name, label, field):
    """Names and labels are checked."""
    status, answer = server.post(CONFIG_MAPS, {"metadata": {"name": name, "labels": {"l": label}}})

    assert (422, field) == (status, answer["details"]["causes"][0]["field"])


def test_events_in_both_versions(server):
    """An event written through events.k8s.io reads as a core event, and the other way round."""
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
        "note": "bound",
        "reason": "Scheduled",
        "type": "Normal",
        "action": "Binding",
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "host",
    }
    status, created = server.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
    _, core = server.get("/api/v1/namespaces/default/events/e")

    assert (201, "events.k8s.io/v1", "bound") == (status, created["apiVersion"], created["note"])
    assert ("v1", "bound", "default-scheduler") == (
        core["apiVersion"],
        core["message"],
        core["reportingComponent"],
    )
    _, found = server.get("/api/v1/events", fieldSelector="involvedObject.name=a,involvedObject.kind=Pod")
    assert ["e"] == names(found)


def test_lease(server):
    """A lease changes hands only from its latest revision."""
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    server.post(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    _, lease = server.get(f"{path}/l")
    renewed = {**lease, "spec": {"holderIdentity": "b"}}

    assert 200 == server.put(f"{path}/l", renewed)[0]
    assert 409 == server.put(f"{path}/l", renewed)[0]


def test_scale(server):
    """Scaling writes spec.replicas."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    server.post(path, {"metadata": {"name": "d"}, "spec": spec})

    _, scale = server.patch(f"{path}/d/scale", {"spec": {"replicas": 4}})
    assert ("autoscaling/v1", 4, "a=b") == (
        scale["apiVersion"],
        scale["spec"]["replicas"],
        scale["status"]["selector"],
    )
    assert 4 == server.get(f"{path}/d")[1]["spec"]["replicas"]


def test_node_status(server):
    """A node keeps the status it is created with; allocatable defaults to capacity."""
    status = {"capacity": {"cpu": 8, "memory": "16384Mi"}}
    _, node = server.post(NODES, {"metadata": {"name": "n"}, "status": status})

    assert {"cpu": "8", "memory": "16Gi"} == node["status"]["allocatable"]


def test_table(server):
    """kubectl's table of pods has its columns and one row a pod."""
    server.pod()
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    _, table = server.get(PODS, accept=accept)

    assert ("Table", "Name", "Ready", "Status") == (
        table["kind"],
        *(column["name"] for column in table["columnDefinitions"][:3]),
    )
    assert ["a", "0/1", "Pending", "0", "0s"] == table["rows"][0]["cells"][:5]


def test_list_items_have_no_kind(server):
    """Items of a list leave their kind to the list; a single object names it."""
    server.pod()
    _, listed = server.get(PODS)

    assert ("PodList", False) == (listed["kind"], "kind" in listed["items"][0])
    assert "Pod" == server.get(f"{PODS}/a")[1]["kind"]


@pytest.mark.parametrize(
    ("collection", "body", "change", "fields"),
    [
        ("/api/v1/namespaces/default/configmaps", {"immutable": True}, {"data": {"a": "b"}}, ["data"]),
        ("/api/v1/namespaces/default/configmaps", {"immutable": True}, {"immutable": False}, ["immutable"]),
        ("/api/v1/namespaces/default/secrets", {"immutable": True}, {"data": {"a": "Yg=="}}, ["data"]),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            {"roleRef": {"kind": "Role", "name": "r"}},
            {"roleRef": {"name": "other"}},
            ["roleRef"],
        ),
    ],
)
def test_fixed(server, collection, body, change, fields):
    """What is fixed for good is refused with the field, and labels may change all the same."""
    assert 201 == server.post(collection, {"metadata": {"name": "x"}, **body})[0]

    status, answer = server.patch(f"{collection}/x", change)
    assert (422, fields) == (status, [cause["field"] for cause in answer["details"]["causes"]])
    assert 200 == server.patch(f"{collection}/x", {"metadata": {"labels": {"a": "b"}}})[0]


def test_finalizers_of_the_dying(server):
    """What is being deleted gets no finalizer more, and goes without its last one."""
    path = "/api/v1/namespaces/default/configmaps"
    server.post(path, {"metadata": {"name": "x", "finalizers": ["a/b"]}})
    server.delete(f"{path}/x")

    status, answer = server.patch(f"{path}/x", {"metadata": {"finalizers": ["a/b", "c/d"]}})
    assert (422, True) == (status, answer["message"].endswith('found new finalizers []string{"c/d"}'))
    server.patch(f"{path}/x", {"metadata": {"finalizers": None}})
    assert 404 == server.get(f"{path}/x")[0]
