"""How the plugin of the sidecar benchmarks is started in each language, before its name and address."""

import sys

from tests.go_toolchain import GO_SDK, build
from tests.java_toolchain import every_tenth, missing
from tests.java_toolchain import install as install_java
from tests.node_toolchain import FROM_SOURCE, NODE, NODE_SDK, install
from tests.rust_toolchain import CARGO, build_example

PYTHON_PLUGIN = [sys.executable, "-m", "tests.benchmarks.sidecar_plugin"]
LOCAL_PLUGIN = [*PYTHON_PLUGIN, "local"]
WITHOUT_PODS = [*PYTHON_PLUGIN, "nopods"]
OVER_GRPC = [*PYTHON_PLUGIN, "--grpc"]


def languages(folder):
    """The plugin in each language for which there are tools, built into the folder: name and command."""
    go_plugin = build("./internal/benchplugin", folder / "plugin", folder=GO_SDK)
    install()
    commands = [
        ("Python", PYTHON_PLUGIN),
        ("Go", [str(go_plugin)]),
        ("TypeScript", [str(NODE), FROM_SOURCE, str(NODE_SDK / "test/benchplugin.ts")]),
    ]
    if CARGO:
        commands.append(("Rust", [str(build_example("benchplugin", folder / "rust-plugin"))]))
    if not missing():
        install_java()
        commands.append(("Java", every_tenth()))
    return commands
