"""The commands of the documentation: `sh` is run by a test, `shell` is not, for a reason."""

import re

from tests.go_toolchain import ROOT

BLOCK = re.compile(r"^```(sh|shell)$", re.MULTILINE)

RUN_BY = {
    "docs/deschedule.md": "tests/e2e/test_simulate_page.py",
    "docs/explain-access.md": "tests/e2e/test_explain_access_page.py",
    "docs/operator.md": "tests/e2e/test_pages.py",
    "docs/plugin-without-an-sdk.md": "tests/e2e/test_plugin_without_an_sdk.py",
    "docs/replace-kube-scheduler.md": "tests/e2e/test_pages.py",
    "docs/sandbox.md": "tests/e2e/test_pages.py",
    "docs/simulate.md": "tests/e2e/test_simulate_page.py",
    "docs/tutorial/README.md": "tests/e2e/test_tutorial.py",
}
"""The test of each page that has commands to run."""

_CHECKOUT = "it sets up the shell for this repository's folder"
_CLUSTER = "it takes a cluster whose kubelets run containers"
_FOREVER = "it serves, or records, until it is ended"
_ITSELF = "it is the test suite, or a part of it"
_REGISTRY = "it takes a registry or an image engine"

NOT_RUN = {
    "CONTRIBUTING.md": {
        "Ten minutes to a test of your own": "tests/unit/test_contributing.py runs the test",
        "Before you send a change": _ITSELF,
    },
    "README.md": {"Try it": "the whole job takes minutes; tests/unit/demo runs it on fewer pods"},
    "docs/autoscalers.md": {
        "Would it fit: a service for autoscalers": _FOREVER,
        "The cluster-autoscaler's expander": _CLUSTER,
    },
    "docs/decisions/0037-images.md": {"37. Images of locked packages, built without a daemon": _REGISTRY},
    "docs/deschedule.md": {
        "Pods that would stand better: descheduling": "it evicts pods of the kubeconfig's cluster",
    },
    "docs/explain-access.md": {
        "Who may have what explained, and how": "its names are the reader's own; the last section has some",
        "Roles": "names stand for the reader's own",
        "Without an APIService": _CLUSTER,
        "Completion": "it changes the reader's shell and krew's folder",
    },
    "docs/hostile-input.md": {"Hostile input": _ITSELF},
    "docs/install.md": {
        "Which way": _CLUSTER,
        "Helm": "tests/e2e/test_helm.py installs the chart",
        "The command": "tests/e2e/test_artefacts.py installs the wheels",
        "Images": _REGISTRY,
        "kind, and other clusters on one machine": _CLUSTER,
        "A static pod in place of kube-scheduler": "it changes a control plane's own files",
        "Upgrade, back, and off": "tests/e2e/test_uninstalling.py and test_helm.py do it",
    },
    "docs/kueue.md": {"How this is held": _ITSELF},
    "docs/live-page.md": {"Look at it": _CLUSTER},
    "docs/operator.md": {"What a change does": _CLUSTER, "Shown by": _ITSELF},
    "docs/plugin-without-an-sdk.md": {"A plugin without an SDK": _CHECKOUT},
    "docs/pod-groups.md": {"Pods that are scheduled together": _FOREVER},
    "docs/releasing.md": {"Publishing, with the keys": _REGISTRY},
    "docs/sandbox.md": {"With a real API server": "it asks a program that fetches kube-apiserver"},
    "docs/scheduler-perf.md": {"Claims for devices and volumes": "it takes upstream's tree, and minutes"},
    "docs/simulate.md": {
        "A simulation": "the whole trace takes minutes",
        "A trace of SimKube": "tests/unit/simulation/test_simkube.py makes such a trace",
        "Sweeps and plots": "the whole trace, many times",
        "A day again": _FOREVER,
        "A cluster seen from outside": _FOREVER,
        "A recorded day": _FOREVER,
    },
    "docs/tracing.md": {
        "A picture on this machine": _REGISTRY,
        "A picture on a cluster": _CLUSTER,
    },
    "docs/tutorial/README.md": {"A plugin from nothing, in a running scheduler": _CHECKOUT},
    "docs/upgrading.md": {"Upgrade": _CLUSTER},
    "docs/versions.md": {"What ran on which": _ITSELF},
}
"""Why the commands below a heading are not run, by page."""


def pages():
    """Every page with commands, by its path in the repository, and its text."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}
    return {path: text for path, text in texts.items() if BLOCK.search(text)}


def headings(text, language):
    """The headings that have blocks of this language directly below them."""
    return {heading for heading, part in sections(text).items() if language in BLOCK.findall(part)}


def sections(text):
    """The parts of a page by their headings, of any level."""
    inside_code = re.sub(
        r"^```.*?^```$", lambda block: block[0].replace("\n#", "\n\0#"), text, flags=re.DOTALL | re.MULTILINE
    )
    parts = re.split(r"^(?=#+ )", inside_code, flags=re.MULTILINE)
    return {
        part.split("\n", 1)[0].lstrip("# "): part.replace("\0", "") for part in parts if part.startswith("#")
    }
