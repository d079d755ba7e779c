"""`berth simulate serve` answers autoscalers until SIGTERM."""

import json
import signal
import subprocess
import sys
import tempfile

import grpc
import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate
from berth_simulation_proto import simulation_pb2 as pb
from berth_simulation_proto import simulation_pb2_grpc
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS
from tests.unit.simulation.kit import node, pod, written

KUBECONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "users": [{"name": "u", "user": {}}],
    "current-context": "c",
}


def test_of_files(tmp_path):
    """It says where it listens, answers about the cluster of the files, and ends with 0 at SIGTERM."""
    cluster = written(tmp_path / "cluster.json", node("n0", cpu="2"))
    asking = pb.WouldFitRequest(pods=[json.dumps(pod(f"p{i}")).encode() for i in range(3)])
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        listen = f"unix://{folder}/s.sock"
        command = [sys.executable, "-m", "berth.cli", "simulate", "serve", cluster, "--listen", listen]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                said = process.stdout.readline()
                with grpc.insecure_channel(f"unix:{folder}/s.sock") as channel:
                    found = simulation_pb2_grpc.SimulationServiceStub(channel).WouldFit(asking)
            finally:
                process.send_signal(signal.SIGTERM)
                code = process.wait(PATIENCE_SECONDS)

    assert f"serving berth.simulation.v1 and grpcplugin.Expander at unix:{folder}/s.sock\n" == said
    assert (2, [2], 0) == (found.fit_now, [left.index for left in found.left_now], code)


@reports("simulate-input", answer="`berth simulate serve`: one line with file or flag; exit status 2")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--listen", "unix:///tmp/x.sock", "--tls-cert", "x"], "--tls-cert and --tls-key belong together"),
        (["--listen", "unix:///tmp/x.sock", "--client-ca", "x"], "--tls-cert and --tls-key belong together"),
        (["{input}", "--listen", "0.0.0.0:0"], "give --tls-cert and --tls-key"),
        (["/nowhere.json", "--listen", "127.0.0.1:0"], "/nowhere.json"),
        (["--kubeconfig", "/nowhere", "--listen", "127.0.0.1:0"], "/nowhere"),
        (["--kubeconfig", "{kubeconfig}", "--listen", "0.0.0.0:0"], "give --tls-cert and --tls-key"),
    ],
)
def test_what_is_wrong(tmp_path, arguments, said):
    """What can't be served is said in one line, with exit code 2."""
    files = {
        "input": written(tmp_path / "cluster.json", node("n0")),
        "kubeconfig": written(tmp_path / "kubeconfig.json", KUBECONFIG),
    }

    done = CliRunner().invoke(simulate, ["serve", *(each.format(**files) for each in arguments)])

    assert 2 == done.exit_code
    assert said in done.stderr
    assert 1 == len(done.stderr.splitlines())
