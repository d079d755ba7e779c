"""The commands as users run them: the main job in small, and one clear line for every bad input."""

import socket
import subprocess

import pytest

from berth.demo.processes import program
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""
PLUGINS = "apiVersion: berth.dev/v1alpha1\nkind: PluginList\nplugins:\n- name: gpu-share\n  address: unix:"
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
NODES_CSV = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,32000,131072,2,G2\n"
PODS_CSV = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-0,4000,8192,1,500,,LS,Running,0,10,1
pod-1,many,8192,1,500,,LS,Running,0,10,1
"""


def run(*command):
    """The command's exit code, and what it says on standard output and on standard error."""
    done = subprocess.run(
        [program(command[0]), *map(str, command[1:])],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_main_job(tmp_path):
    """The main job in small ends well and reports pods, processes, checks and where the traces are."""
    code, said, complaints = run("berth", "demo", "--pods", 300, "--folder", tmp_path)

    assert (0, "") == (code, complaints)
    assert "300 pods bound in" in said
    assert "checked 1523 nodes, 300 pods, 300 of them bound, each once" in said
    for word in (
        "gpu-share",
        "bin-packing",
        "default-scheduler",
        "GPU",
        "p99",
        "/live",
        f"{tmp_path}/traces.jsonl",
    ):
        assert word in said


class Inputs:
    """Files in a folder, and the commands on them that have to fail."""

    def __init__(self, folder, taken_port):
        self.folder = folder
        self.taken_port = taken_port

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def scheduler(self, *flags, configuration=CONFIGURATION):
        config = self.file("config.yaml", configuration)
        return "berth", "scheduler", f"--config={config}", *flags

    def with_kubeconfig(self, *flags, name="kubeconfig"):
        self.file("kubeconfig", KUBECONFIG)
        connection = f"clientConnection: {{kubeconfig: {self.folder / name}}}\n"
        return self.scheduler(*flags, configuration=CONFIGURATION + connection)

    def malformed(self):
        return self.scheduler(configuration=CONFIGURATION + "profiles: [{schedulerName: a, plugs: {}}]\n")

    def no_yaml(self):
        return self.scheduler(configuration="profiles: [")

    def unknown_plugin(self):
        profile = "profiles: [{plugins: {filter: {enabled: [{name: NoSuchPlugin}]}}}]\n"
        return self.scheduler(configuration=CONFIGURATION + profile)

    def no_kubeconfig(self):
        return self.with_kubeconfig("--secure-port=0", name="absent")

    def no_configuration(self):
        return "berth", "scheduler", f"--config={self.folder / 'absent'}"

    def port_in_use(self):
        return self.with_kubeconfig("--bind-address=127.0.0.1", f"--secure-port={self.taken_port}")

    def sandbox_port_in_use(self):
        return "berth", "sandbox", "up", "--port", self.taken_port, "--kubeconfig", self.folder / "k"

    def no_socket_folder(self):
        plugins = self.file("plugins.yaml", f"{PLUGINS}{self.folder}/absent/gpu-share/gpu-share.sock\n")
        return self.with_kubeconfig(f"--plugins={plugins}", "--secure-port=0")

    def broken_line(self):
        self.file("openb_node_list_all_node.csv", NODES_CSV)
        self.file("openb_pod_list_default.csv", PODS_CSV)
        return "berth", "demo", "--openb", self.folder, "--folder", self.folder / "run"

    def no_data(self):
        return "berth", "demo", "--openb", self.folder / "absent", "--folder", self.folder / "run"

    def socket_is_a_file(self):
        return "berth-gpu-share", "--address", f"unix:{self.file('plugin.sock', '')}"


@pytest.fixture
def inputs(tmp_path):
    """Inputs, and a port that is taken."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Inputs(tmp_path, server.getsockname()[1])


@pytest.mark.parametrize(
    ("command", "says"),
    [
        pytest.param(Inputs.malformed, 'unknown field "profiles[0].plugs"', id="unknown field"),
        pytest.param(Inputs.no_yaml, "config.yaml", id="no YAML"),
        pytest.param(Inputs.unknown_plugin, "NoSuchPlugin", id="unknown plugin"),
        pytest.param(Inputs.no_kubeconfig, "absent", id="kubeconfig that does not exist"),
        pytest.param(Inputs.no_configuration, "no such file", id="configuration that does not exist"),
        pytest.param(Inputs.port_in_use, "address already in use", id="port in use"),
        pytest.param(Inputs.sandbox_port_in_use, "in use", id="sandbox's port in use"),
        pytest.param(Inputs.no_socket_folder, "absent", id="plugin socket's folder missing"),
        pytest.param(Inputs.broken_line, "openb_pod_list_default.csv:3", id="CSV with a broken line"),
        pytest.param(Inputs.no_data, "absent", id="data set that does not exist"),
        pytest.param(Inputs.socket_is_a_file, "no socket", id="plugin's socket is a file"),
    ],
)
def test_bad_input(inputs, command, says):
    """Bad input ends the command with code 2 and one line that says what is wrong."""
    code, said, complaints = run(*command(inputs))

    assert (2, "", 1) == (code, said, len(complaints.splitlines())), complaints
    assert says in complaints
    assert "Traceback" not in complaints
