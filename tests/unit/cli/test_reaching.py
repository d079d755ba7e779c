"""`berth explain` and `kubectl berth explain`, as a developer has them: by a kubeconfig, and nothing else."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.cli.asking.cluster import KubeconfigCluster
from berth.cli.main import main
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS
from tests.unit.explaining_at_work import RBAC, explaining, explanation, gang, pod
from tests.unit.scheduler_at_work import eventually

BIN = Path(sys.executable).parent
COMPLETE = "from berth.cli.kubectl import kubectl_complete_berth as main; main()"


class Developer:
    """Jane at her machine."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.kubeconfig = cluster.folder / "jane"
        self.environment = {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "KUBECONFIG": str(self.kubeconfig),
            "HOME": str(cluster.folder),
        }

    async def run(self, *command):
        """Give exit code, standard output and standard error of a command.

        `berth` is run in this process, whose imports it does not pay again; `kubectl` starts it as a process.
        """
        if command[0] == BIN / "berth":
            line = [str(each) for each in command[1:]]
            outcome = await asyncio.to_thread(
                CliRunner().invoke, main, line, env=self.environment, prog_name="berth"
            )
            return outcome.exit_code, outcome.stdout, outcome.stderr
        process = await asyncio.create_subprocess_exec(
            *command, env=self.environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        said, complaints = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
        return process.returncode, said.decode(), complaints.decode()


@pytest.fixture
async def jane(tmp_path):
    """A developer who may view team-a, and the cluster in which two replicas schedule."""
    listing = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "pods",
            "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
        },
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
    }
    pods = pod("team-a", "p", "first"), pod("team-a", "other", "first"), pod("team-b", "p", "first")
    group, member = gang("team-a", "g", "first")
    async with explaining(tmp_path, ["first", "first"], listing, *pods, group, member) as cluster:
        yield Developer(cluster)


async def test_a_developer_with_kubectl(jane):
    """A pod of her namespace is explained, one next door is not, by each command that there is."""
    for command in (
        [BIN / "kubectl", "get", "--raw", explanation("team-a", "p")],
        [BIN / "kubectl", "berth", "explain", "pod", "p", "-n", "team-a", "-o", "json"],
    ):
        code, said, complaints = await jane.run(*command)
        assert (0, "team-a/p") == (code, json.loads(said)["pod"]), complaints
    for command in (
        [BIN / "kubectl", "get", "--raw", explanation("team-b", "p")],
        [BIN / "kubectl", "berth", "explain", "pod", "p", "-n", "team-b"],
    ):
        code, _, complaints = await jane.run(*command)
        assert 0 != code
        assert 'User "jane" cannot get resource "podexplanations"' in complaints


async def test_the_other_questions(jane):
    """A group is explained to her by her kubeconfig; the cluster's views take a role that the error names."""
    berth, kubectl = [BIN / "berth"], [BIN / "kubectl", "berth"]
    for command in (berth, kubectl):
        code, said, complaints = await jane.run(*command, "explain", "podgroup", "g", "-n", "team-a")
        assert (0, "podgroup team-a/g: 1 pod") == (code, said.splitlines()[0].partition(",")[0]), complaints
    questions = ("explain", "node", "n1"), ("explain", "profile", "first"), ("queue", "first")
    for question in questions:
        code, _, complaints = await jane.run(*berth, *question)
        assert (2, True) == (code, "berth-cluster-viewer" in complaints), complaints
    for question, first in zip(questions, ("node n1: ", "profile first", "profiles first"), strict=True):
        kubeconfig = f"--kubeconfig={jane.cluster.folder}/oscar"
        code, said, complaints = await jane.run(*kubectl, *question, kubeconfig)
        assert (0, True) == (code, said.startswith(first)), complaints


async def test_the_only_profile(jane):
    """A queue and a profile need no name where there is one, by the API server or at a secure port."""
    (jane.cluster.folder / "ca.crt").write_text(jane.cluster.authority)
    oscar = f"--kubeconfig={jane.cluster.folder}/oscar"
    port = [f"--server=https://127.0.0.1:{jane.cluster.ports[0]}"]
    port.append(f"--certificate-authority={jane.cluster.folder}/ca.crt")
    for where in ([oscar], [oscar, *port]):
        for question, first in (("queue",), "profiles first"), (("explain", "profile"), "profile first"):
            code, said, complaints = await jane.run(BIN / "berth", *question, *where)
            assert (0, True) == (code, said.startswith(first)), complaints
    code, _, complaints = await jane.run(BIN / "berth", "queue", "none", oscar)
    assert (2, True) == (code, "no profile none; there are: first" in complaints), complaints


async def test_several_profiles(tmp_path):
    """Where there are several and none is default-scheduler, the error lists them, and how one is named."""
    async with explaining(tmp_path, ["first", "second"]) as cluster:
        oscar = f"--kubeconfig={tmp_path}/oscar"
        code, _, complaints = await Developer(cluster).run(BIN / "berth", "queue", oscar)

    there = {"first, second", "second, first"}
    named = {f"Error: which profile? There are {names}: name one, as in berth queue " for names in there}
    assert 2 == code
    assert complaints.rpartition(" ")[0] + " " in named, complaints


async def test_a_table(jane):
    """`kubectl get` finds the resource by its name, and prints a row of the pod."""
    code, said, complaints = await jane.run(BIN / "kubectl", "get", "podexplanations", "p", "-n", "team-a")

    assert (0, ["NAME", "SCHEDULER", "STATE", "CAUSE"]) == (code, said.splitlines()[0].split()), complaints
    assert ["p", "first"] == said.splitlines()[1].split()[:2]


async def test_the_secure_port(jane):
    """Named, a scheduler is asked with the kubeconfig's token, unless it is not verified."""
    (jane.cluster.folder / "ca.crt").write_text(jane.cluster.authority)
    asked = [BIN / "berth", "explain", "pod", "p", "-n", "team-a", "-o", "json"]
    ports = [f"--server=https://127.0.0.1:{port}" for port in jane.cluster.ports]
    for port in ports:
        code, said, complaints = await jane.run(
            *asked, port, f"--certificate-authority={jane.cluster.folder}/ca.crt"
        )
        assert (0, "team-a/p") == (code, json.loads(said)["pod"]), complaints
    code, _, complaints = await jane.run(*asked, ports[0], "--insecure-skip-tls-verify")

    assert 2 == code
    assert 'User "system:anonymous" cannot get' in complaints
    assert "--token" in complaints


@reports("no-api-service", answer="`berth explain`: that no scheduler is ready, and how to ask one directly")
async def test_without_an_api_service(jane):
    """The error says why there may be none, and what to do without."""
    services = jane.cluster.sandbox.store.collection("apiservices.apiregistration.k8s.io")
    name = "v1alpha1.explain.berth.dev"
    services.delete(name, {"metadata": {"name": name}})
    catalogue = jane.cluster.sandbox.api.catalogue
    await eventually(lambda: catalogue.get("explain.berth.dev", "v1alpha1", "podexplanations") is None)
    code, _, complaints = await jane.run(BIN / "berth", "explain", "pod", "p", "-n", "team-a")

    assert 2 == code
    assert "no scheduler is ready" in complaints
    assert "--server https://localhost:10259" in complaints


async def test_completion(jane):
    """kubectl gets the words that there are: commands, and names of what its user may list."""

    async def completed(*words, user="jane"):
        jane.environment["KUBECONFIG"] = str(jane.cluster.folder / user)
        code, said, complaints = await jane.run(sys.executable, "-c", COMPLETE, *words)
        *found, directive = said.splitlines()
        assert (0, ":4", "") == (code, directive, complaints)
        return [line.split("\t")[0] for line in found]

    assert ["explain"] == await completed("expl")
    assert ["g-0", "other", "p"] == await completed("explain", "pod", "-n", "team-a", "")
    assert ["g"] == await completed("explain", "podgroup", "-n", "team-a", "", user="admin")
    assert ["n1"] == await completed("explain", "node", "", user="admin")
    assert ["other"] == await completed("explain", "pod", "-n", "team-a", "o")
    assert [] == await completed("explain", "pod", "-n", "team-b", "")
    assert ["team-a", "team-b"] == await completed("explain", "pod", "-n", "team", user="admin")


def test_namespace_of_the_context(tmp_path):
    """Without --namespace it is the context's, as for kubectl."""
    file = tmp_path / "kubeconfig"
    context = {"cluster": "c", "namespace": "team-a"}
    file.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                "contexts": [{"name": "x", "context": context}, {"name": "y", "context": {"cluster": "c"}}],
                "current-context": "x",
            }
        )
    )

    assert ["team-a", "default"] == [KubeconfigCluster(str(file), name).namespace() for name in ("", "y")]


def test_a_kubeconfig_that_is_not_there(tmp_path):
    """The error names it."""
    done = CliRunner().invoke(main, ["explain", "pod", "p", f"--kubeconfig={tmp_path}/none"])

    assert 2 == done.exit_code
    assert f"{tmp_path}/none" in done.output


KUBECTLS_OWN = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


@pytest.mark.parametrize(
    "command",
    [
        ["snapshot", "--output=/dev/null"],
        ["deschedule", "--policy={folder}/policy.yaml"],
        ["plugin", "attach", "p", "--address=unix:/p.sock", "--namespace=default"],
        ["plugin", "list"],
        ["plugin", "describe", "p"],
        ["queue"],
        ["explain", "pod", "p"],
        ["explain", "node", "n"],
    ],
    ids=" ".join,
)
def test_the_cluster_that_kubectl_would_ask(command, tmp_path, monkeypatch):
    """Without --kubeconfig and $KUBECONFIG it is that of ~/.kube/config."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube/config").write_text(KUBECTLS_OWN)
    policy = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: [{name: p}]\n"
    (tmp_path / "policy.yaml").write_text(policy)
    result = CliRunner().invoke(main, [each.format(folder=tmp_path) for each in command])

    assert 2 == result.exit_code
    expected = f"127.0.0.1:1: Connection refused: the API server of context c of {tmp_path}/.kube/config: "
    assert f"Error: {expected}name another with --kubeconfig or --context\n" == result.output


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["plugin", "list"], "no kubeconfig was found, so the scheduler of this machine was asked"),
        (["queue"], "no kubeconfig was found, so the scheduler of this machine was asked"),
        (["plugin", "list", "-n", "default"], "no cluster is known"),
        (["snapshot", "--output=/dev/null"], "no cluster is known"),
    ],
    ids=" ".join,
)
def test_no_cluster(command, expected, tmp_path, monkeypatch):
    """Where there is no kubeconfig at all, the error says so, and which option names one."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_MASTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("berth.cli.asking.access.LOCAL", "https://127.0.0.1:1")
    result = CliRunner().invoke(main, command)

    assert 2 == result.exit_code
    assert expected in result.output
    assert "--kubeconfig" in result.output


def test_a_snapshot_that_fails_leaves_no_file(tmp_path):
    """Half a file would pass for a cluster without pods."""
    (tmp_path / "kubeconfig").write_text(KUBECTLS_OWN)
    line = ["snapshot", f"--kubeconfig={tmp_path}/kubeconfig", f"--output={tmp_path}/out"]

    assert 2 == CliRunner().invoke(main, line).exit_code
    assert not (tmp_path / "out").exists()
