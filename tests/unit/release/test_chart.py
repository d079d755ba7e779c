"""The Helm chart, rendered by Helm's own library, is the overlay that it was made of."""

import json

import pytest
import yaml

from tests.release import chart
from tests.release.manifests import kustomized
from tests.release.version import version

helm = pytest.importorskip("helm_python", reason="Helm's library has no wheel for this machine")

VERSION = version()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The chart, as it is in a release."""
    return chart.write(tmp_path_factory.mktemp("chart"), VERSION)


@pytest.fixture(scope="module")
def rendered(made):
    """A function that gives the objects of a release with these values, by kind and name."""

    def objects(values, namespace="berth-system"):
        with helm.Chart.load(str(made)) as loaded:
            texts = loaded.render(values, name="berth", namespace=namespace)
        documents = [each for text in texts.values() for each in yaml.safe_load_all(text)]
        return {(one["kind"], one["metadata"]["name"]): one for one in documents if isinstance(one, dict)}

    return objects


def test_the_overlay(rendered):
    """With its own values the chart gives the objects of the overlay `secondary`, but for the namespace."""
    wanted = {(one["kind"], one["metadata"]["name"]): one for one in kustomized(chart.OVERLAY)}
    del wanted["Namespace", "berth-system"]

    assert wanted == rendered({})


def test_the_definitions_come_along(made):
    """The chart has the definitions of both kinds."""
    assert ["schedulerplugins.yaml", "schedulers.yaml"] == sorted(path.name for path in made.glob("crds/*"))


def test_lint(made):
    """Helm has nothing to say against the chart."""
    assert [] == helm.lint(str(made))["errors"]


def test_another_namespace(rendered):
    """Nothing names another namespace than the release's."""
    assert "berth-system" not in json.dumps(list(rendered({}, "another").values()))


def test_a_registry_of_ones_own(rendered):
    """A prefix and a tag reach the operator's image and the schedulers' default."""
    values = {"image": {"prefix": "registry.example.com/mirror/", "tag": "0.1.1"}}

    pod = rendered(values)["Deployment", "berth-operator"]["spec"]["template"]["spec"]

    (container,) = pod["containers"]
    assert "registry.example.com/mirror/operator:0.1.1" == container["image"]
    assert {"name": "BERTH_SCHEDULER_IMAGE", "value": "registry.example.com/mirror/scheduler:0.1.1"} in (
        container["env"]
    )


def test_where_the_operator_runs(rendered):
    """Values say where the operator's pods run, and with which secrets."""
    values = {
        "image": {"pullSecrets": [{"name": "mirror"}]},
        "operator": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
    }

    pod = rendered(values)["Deployment", "berth-operator"]["spec"]["template"]["spec"]

    assert ([{"name": "mirror"}], {"a": "b"}, [{"operator": "Exists"}]) == (
        pod["imagePullSecrets"],
        pod["nodeSelector"],
        pod["tolerations"],
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"scheduler": {"create": False}}, "Scheduler"),
        ({"networkPolicy": {"enabled": False}}, "NetworkPolicy"),
    ],
)
def test_what_may_be_left_out(rendered, values, kind):
    """The scheduler and the network policy may be left out."""
    assert {kind} == {kind for kind, _ in rendered({}).keys() - rendered(values).keys()}


@pytest.mark.parametrize(("enabled", "name"), [(True, "berth-explain"), (False, "")])
def test_explanations_through_the_api_server(rendered, enabled, name):
    """One value says whether the operator has them served."""
    pod = rendered({"explain": {"enabled": enabled}})["Deployment", "berth-operator"]["spec"]["template"]

    assert {"name": "BERTH_EXPLAIN_SERVICE", "value": name} in pod["spec"]["containers"][0]["env"]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"image": {"prefix": "no slash"}}, "/image/prefix"),
        ({"operator": {"replicas": 100}}, "/operator/replicas"),
        ({"shceduler": {}}, "shceduler"),
    ],
)
def test_values_are_checked(made, values, complaint):
    """A value that the schema does not allow is named."""
    with helm.Chart.load(str(made)) as loaded, pytest.raises(helm.HelmError, match=complaint):
        loaded.validate_schema(values)


def test_every_value_has_a_schema(made):
    """The schema allows the chart's own values and no others."""
    values = yaml.safe_load((made / "values.yaml").read_text())
    schema = json.loads((made / "values.schema.json").read_text())["properties"]

    assert schema.keys() - {"global"} == values.keys()
    assert all(schema[name]["properties"].keys() == value.keys() for name, value in values.items())
