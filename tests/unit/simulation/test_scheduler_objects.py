"""A Scheduler and its SchedulerPlugins are simulated as the operator renders them."""

import json
import shlex
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.simulation.errors import InputError, PluginsError
from berth.simulation.plugins.plugin_settings import read_scheduler
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.unit.simulation.kit import cluster, node, pod, written
from tests.unit.simulation.test_plugins import NODES, PROGRAM

IMAGE = "example.com/favourite:7"
BEST = {"extensionPoints": ["score"], "profiles": ["berth"], "arguments": {"best": "n1"}, "timeout": "60s"}


def ours(kind, name, **spec):
    """An object of the operator's."""
    metadata = {"name": name, "namespace": "berth-system"}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def scheduler(*plugins, name="main", **spec):
    """A Scheduler with one profile and these plugins."""
    profiles = spec.pop("profiles", [{"schedulerName": "berth"}])
    return ours("Scheduler", name, profiles=profiles, plugins=[{"name": each} for each in plugins], **spec)


def started(version="7"):
    """The value of --plugin that starts the plugin."""
    return f"favourite={shlex.join([sys.executable, str(PROGRAM), version])}"


def named(*pods):
    """Pods of the Scheduler's profile."""
    return [pod(each, schedulerName="berth") for each in pods]


def test_its_profiles_and_gates_are_those_of_the_objects(tmp_path):
    """Packing, as the profile says, puts two pods on one node; the gates are on."""
    packing = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    profile = {
        "schedulerName": "berth",
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": packing}}],
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
    }
    path = written(tmp_path / "s.yaml", scheduler(profiles=[profile], featureGates={"GenericWorkload": True}))

    settings = read_scheduler(str(path), "GangScheduling=true")
    found = simulate(cluster(tmp_path, *NODES, *named("p0", "p1")), SimulationOptions(*settings))

    assert 1 == len(set(found.placed_on.values()))
    gates = settings.loaded.gates
    assert gates.enabled("GenericWorkload")
    assert gates.enabled("GangScheduling")


def test_a_scheduler_of_the_input_is_simulated(tmp_path):
    """With its plugin, which an image runs in the cluster and a command here; --config comes first."""
    plugin = ours("SchedulerPlugin", "favourite", image=IMAGE, **BEST)
    path = str(written(tmp_path / "all.json", scheduler("favourite"), plugin, *NODES, *named("p0")))

    found = CliRunner().invoke(command, [path, "-o", "json", "--plugin", started()])
    usual = CliRunner().invoke(command, [path, "-o", "json", "--config", str(config(tmp_path))])

    assert 0 == found.exit_code, found.output
    outcome = json.loads(found.stdout)
    assert ["n1"] == [each["node"] for each in outcome["placements"]]
    assert ["favourite"] == [each["name"] for each in outcome["plugins"]]
    assert "the scheduler is that of" in found.stderr
    assert "NoProfile" in usual.stdout or 3 == usual.exit_code


def config(folder):
    """A KubeSchedulerConfiguration without that profile."""
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return written(folder / "usual.json", document)


def test_a_plugin_of_an_image_has_to_be_reached(tmp_path):
    """The error names the object, its image and the option."""
    plugin = ours("SchedulerPlugin", "favourite", image=IMAGE, **BEST)
    path = written(tmp_path / "s.yaml", scheduler("favourite"), plugin)

    with pytest.raises(
        PluginsError,
        match=rf"s.yaml: Scheduler berth-system/main: SchedulerPlugin favourite: spec.image: {IMAGE}: "
        "give --plugin favourite=COMMAND",
    ):
        simulate(cluster(tmp_path, *NODES), SimulationOptions(*read_scheduler(str(path), "")))


def test_a_plugin_at_an_address_of_the_cluster_has_to_be_named(tmp_path):
    """It serves a scheduler there, and is shown another cluster only where a user says so."""
    plugin = ours("SchedulerPlugin", "favourite", address="127.0.0.1:9000", **BEST)
    path = written(tmp_path / "s.yaml", scheduler("favourite"), plugin)

    with pytest.raises(PluginsError, match=r"spec\.address: 127\.0\.0\.1:9000: give --plugin"):
        simulate(cluster(tmp_path, *NODES), SimulationOptions(*read_scheduler(str(path), "")))
    there = read_scheduler(str(path), "", ways=["favourite=127.0.0.1:9000"])
    assert ["127.0.0.1:9000"] == [spec.address for spec in there.plugins.sidecars]


def test_a_list_says_how_plugins_are_reached(tmp_path):
    """What the plugin does stays what its SchedulerPlugin says."""
    plugin = ours("SchedulerPlugin", "favourite", image=IMAGE, **BEST)
    path = written(tmp_path / "s.yaml", scheduler("favourite"), plugin)
    entry = {"name": "favourite", "command": ["favourite"], "args": {"best": "n0"}}
    document = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": [entry]}

    (spec,) = read_scheduler(str(path), "", str(written(tmp_path / "list.json", document))).plugins.sidecars

    assert (("favourite",), {"best": "n1"}) == (spec.command, spec.args)


def test_an_option_comes_before_a_list(tmp_path):
    """For a KubeSchedulerConfiguration, too."""
    enabled = [{"name": "favourite"}]
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "berth", "plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    entry = {"name": "favourite", "command": ["old"]}
    listed = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": [entry]}
    files = (str(written(tmp_path / f"{i}.json", each)) for i, each in enumerate((document, listed)))
    config_file, plugins_file = files

    (spec,) = read_scheduler(config_file, "", plugins_file, ways=["favourite=new --fast"]).plugins.sidecars

    assert ("new", "--fast") == spec.command


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        pytest.param([scheduler("gone")], "no SchedulerPlugin gone", id="plugin missing"),
        pytest.param([scheduler(), scheduler(name="b")], "2 Schedulers .*give --config", id="two"),
        pytest.param(
            [scheduler(profile=[])], "Scheduler berth-system/main: spec.profile: unknown", id="field"
        ),
        pytest.param([scheduler(replicas=-1)], "spec.replicas: .*; correct the field", id="value"),
        pytest.param(
            [scheduler(profiles=[{"schedulerName": "a"}, {"schedulerName": "a"}])],
            "Scheduler berth-system/main: ",
            id="profile twice",
        ),
        pytest.param(
            [scheduler("favourite"), ours("SchedulerPlugin", "favourite")],
            "SchedulerPlugin berth-system/favourite: .*image",
            id="neither image nor address",
        ),
        pytest.param(
            [{**scheduler(), "apiVersion": "berth.dev/v9"}], "apiVersion: found 'berth.dev/v9'", id="version"
        ),
    ],
)
def test_wrong_objects_are_refused(tmp_path, documents, said):
    """The error names the file, the object, the field and what to do."""
    path = written(tmp_path / "s.yaml", *documents)

    with pytest.raises(InputError, match=f"s.yaml: .*{said}"):
        read_scheduler(str(path), "")


@pytest.mark.parametrize(
    ("way", "said"),
    [
        pytest.param("favourite", "write NAME=COMMAND", id="no way"),
        pytest.param("favourite='a", "quote the command", id="open quote"),
        pytest.param("favourite=10.0.0.1:9000", "reached over a network", id="no certificates"),
        pytest.param(
            "other=a", "no profile of .* uses a plugin of that name; there are favourite", id="none"
        ),
    ],
)
def test_wrong_ways_are_refused(tmp_path, way, said):
    """The error names the option, the plugin and what to do."""
    plugin = ours("SchedulerPlugin", "favourite", image=IMAGE, **BEST)
    path = written(tmp_path / "s.yaml", scheduler("favourite"), plugin)

    with pytest.raises(PluginsError, match=f"--plugin.*{said}"):
        read_scheduler(str(path), "", ways=[way])


def test_it_is_seen_from_whatever_spelling(tmp_path):
    """YAML, JSON and the lists of kubectl."""
    document = scheduler()
    spellings = {
        "a.yaml": "# mine\nkind: Scheduler  # one\napiVersion: berth.dev/v1alpha1\n"
        "metadata: {name: main}\nspec: {profiles: [{schedulerName: berth}]}\n",
        "b.json": json.dumps(document),
        "c.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": [document]}),
    }

    for name, text in spellings.items():
        (tmp_path / name).write_text(text)
        loaded = read_scheduler(str(tmp_path / name), "").loaded
        assert ["berth"] == [profile.scheduler_name for profile in loaded.profiles], name


def example_of_the_page():
    """The Scheduler of docs/operator.md, without its plugins."""
    page = Path(__file__).parents[3].joinpath("docs/operator.md").read_text()
    documents = yaml.safe_load_all(page.split("```yaml")[1].split("```")[0])
    example = next(document for document in documents if document["kind"] == "Scheduler")
    del example["spec"]["plugins"]
    return example


def test_the_bin_packing_of_the_documents_packs_the_pods_of_a_workload(tmp_path):
    """Replicas on labelled nodes are what the default constraints of PodTopologySpread would spread."""
    labels = {"app": "web"}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}},
    }
    nodes = [node(f"n{i}", cpu="8", labels={"topology.kubernetes.io/zone": f"z{i}"}) for i in range(3)]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    pods = [pod(f"p{i}", cpu="1", schedulerName="bin-packing") for i in range(3)]
    for each in pods:
        each["metadata"] |= {"labels": labels, "ownerReferences": [owner]}
    path = written(tmp_path / "s.yaml", example_of_the_page())

    found = simulate(
        cluster(tmp_path, *nodes, workload, *pods), SimulationOptions(*read_scheduler(str(path), ""))
    )

    assert (3, 1) == (len(found.placed_on), len(set(found.placed_on.values())))
