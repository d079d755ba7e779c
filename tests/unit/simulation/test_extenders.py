"""HTTP extenders take part in simulations: asked over HTTP, at no virtual time, and counted."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from berth.config.loading import load
from berth.simulation.errors import PluginsError
from berth.simulation.plugins.plugin_settings import read_scheduler
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.unit.simulation.kit import cluster, node, pod, profiles

NODES = [node(f"n{i}") for i in range(3)]


class Answering(BaseHTTPRequestHandler):
    """Lets no pod onto n0 and likes n2 best; answers pods that are called broken with an error."""

    def do_POST(self):
        """Answer as the protocol has it."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/prioritize":
            self._say([{"Host": name, "Score": 10 * (name == "n2")} for name in asked["NodeNames"]])
        elif asked["Pod"]["metadata"]["name"] == "broken":
            self._say({"Error": "out of order"})
        else:
            self._say({"NodeNames": [name for name in asked["NodeNames"] if name != "n0"]})

    def _say(self, document):
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Keep quiet."""


@contextmanager
def extender(**fields):
    """The options of a scheduler with an extender that answers, and its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    settings = {
        "urlPrefix": url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 5,
        "httpTimeout": "60s",
        "nodeCacheCapable": True,
    }
    document = profiles({"schedulerName": "default-scheduler"}, extenders=[settings | fields])
    try:
        yield SimulationOptions(load(json.dumps(document)), max_seconds=5.0), url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_extenders_filter_and_score(tmp_path):
    """Pods go where the extender likes it, with its calls in the outcome."""
    found = cluster(tmp_path, *NODES, pod("p0"), pod("p1"))

    with extender() as (options, url):
        outcome = simulate(found, options)

    assert {"default/p0": "n2", "default/p1": "n2"} == outcome.placed_on
    assert [(url, 4, {})] == [(use.name, use.calls, use.failed) for use in outcome.plugins]


@pytest.mark.parametrize("ignorable", [False, True])
def test_failures_mean_what_the_configuration_says(tmp_path, ignorable):
    """An ignorable extender's failure is passed over, another's turns the pod down; both are counted."""
    with extender(ignorable=ignorable) as (options, _):
        outcome = simulate(cluster(tmp_path, *NODES, pod("broken")), options)

    (use,) = outcome.plugins
    assert ignorable == bool(outcome.placements)
    assert use.failed["failed"] > 0
    assert ignorable == (use.passed_over > 0)


def test_an_extender_that_binds_is_refused(tmp_path):
    """It would bind in a real cluster: the error names the field."""
    document = profiles(
        {"schedulerName": "s"}, extenders=[{"urlPrefix": "http://127.0.0.1:1", "bindVerb": "bind"}]
    )
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps(document))

    with pytest.raises(PluginsError, match=r"scheduler.json: extenders\[0\].bindVerb: .*take the field out"):
        read_scheduler(str(path), "")
