from tests.unit.sandbox.conftest import PODS

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def config_map(**data):
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": data}


def apply(server, manager, document, **query):
    return server.patch(f"{CONFIG_MAPS}/a", document, "apply", fieldManager=manager, **query)


def data(server):
    return server.get(f"{CONFIG_MAPS}/a")[1].get("data", {})


def test_creates(server):
    """Applying what is not there creates it, and notes who owns what."""
    status, created = apply(server, "one", config_map(x="1"))

    (entry,) = created["metadata"]["managedFields"]
    assert (201, "one", "Apply") == (status, entry["manager"], entry["operation"])
    assert {"f:data": {"f:x": {}}} == entry["fieldsV1"]


def test_two_managers(server):
    """Two managers share an object, each with its own fields."""
    apply(server, "one", config_map(x="1"))
    apply(server, "two", config_map(y="2"))

    assert {"x": "1", "y": "2"} == data(server)


def test_abandoned(server):
    """What a manager no longer applies, and no other does, goes."""
    apply(server, "one", config_map(x="1", y="1"))
    apply(server, "two", config_map(y="1"))
    apply(server, "one", config_map())

    assert {"y": "1"} == data(server)


def test_conflict(server):
    """Another manager's value cannot be changed but by force, which takes the field over."""
    apply(server, "one", config_map(x="1"))
    status, answer = apply(server, "two", config_map(x="2"))

    assert (409, 'Apply failed with 1 conflict: conflict with "one": .data.x') == (status, answer["message"])
    assert ("FieldManagerConflict", ".data.x") == (
        answer["details"]["causes"][0]["reason"],
        answer["details"]["causes"][0]["field"],
    )
    assert 200 == apply(server, "two", config_map(x="2"), force="true")[0]
    assert 409 == apply(server, "one", config_map(x="1"))[0]


def test_same_value(server):
    """The same value is shared, not contested."""
    apply(server, "one", config_map(x="1"))

    assert 200 == apply(server, "two", config_map(x="1"))[0]


def test_again(server):
    """Applying the same again is not a new revision."""
    _, first = apply(server, "one", config_map(x="1"))
    server.now += 60

    assert first == apply(server, "one", config_map(x="1"))[1]


def test_update_takes_over(server):
    """An update owns what it changes: a later apply by the first manager conflicts."""
    apply(server, "one", config_map(x="1"))
    server.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "9"}}, fieldManager="editor")
    status, answer = apply(server, "one", config_map(x="1"))

    assert 409 == status
    assert 'conflict with "editor" using v1' in answer["message"]


def test_untracked(server):
    """What was created without apply belongs to before-first-apply."""
    server.post(CONFIG_MAPS, config_map(x="1"))
    status, answer = apply(server, "one", config_map(x="2"))

    assert 409 == status
    assert 'conflict with "before-first-apply"' in answer["message"]


def test_no_manager(server):
    """An apply has to name its manager."""
    assert 422 == server.patch(f"{CONFIG_MAPS}/a", config_map(), "apply")[0]


def test_keyed_lists(server):
    """Containers are owned one by one: dropping one removes it and leaves the other manager's alone."""

    def pod(*containers):
        listed = [{"name": name, "image": "x:1"} for name in containers]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": listed}}

    def deployment(*containers):
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(*containers)["spec"]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}

    path = f"{DEPLOYMENTS}/a"
    server.patch(path, deployment("c", "d"), "apply", fieldManager="one")
    server.patch(path, deployment("e"), "apply", fieldManager="two")
    server.patch(path, deployment("c"), "apply", fieldManager="one")

    containers = server.get(path)[1]["spec"]["template"]["spec"]["containers"]
    assert ["c", "e"] == [container["name"] for container in containers]
    assert 404 == server.get(f"{PODS}/a")[0]


def test_only_where_nothing_is(server):
    """With a version that no object has, an apply creates, and conflicts with what is there."""
    document = config_map(x="1")
    document["metadata"]["resourceVersion"] = "1"

    assert [201, 409] == [apply(server, "one", document)[0] for _ in range(2)]


def test_only_that_object(server):
    """With a UID, an apply does not create: the object that was meant is gone."""
    document = config_map(x="1")
    document["metadata"]["uid"] = "u1"
    status, answer = apply(server, "one", document)

    assert (409, True) == (status, "uid mismatch" in answer["message"])
