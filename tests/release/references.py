"""The SDKs' references for the site, each made of its sources by its language's own tool.

`python -m tests.release.references FOLDER` writes FOLDER/plugin-sdk/LANGUAGE/reference.md, and beside it what
rustdoc and javadoc make. Where a tool is missing, the page and a line on stderr say so. Python's is made
with the site (tests.release.site).
"""

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from tests import java_toolchain, node_toolchain, rust_toolchain
from tests.go_toolchain import GO_SDK, ask_go
from tests.release.declarations import go_page, typescript_page
from tests.release.dist import ToolMissingError, run

_TREE: Final = "reference"
_CRATE: Final = "berth_plugin_sdk"
_PACKAGE: Final = "dev.berth.plugin"


def go(folder: Path) -> str:
    """Give the page of the Go packages, of what `go doc` prints."""
    del folder
    parts = []
    for package in ("./berth", "./berthtest"):
        printed = ask_go("doc", "-all", package, folder=GO_SDK)
        if printed is None:
            raise RuntimeError(f"`go doc -all {package}` fails")
        parts.append(go_page(printed))
    return "\n".join(parts)


def typescript(folder: Path) -> str:
    """Give the page of the package's modules, of the declarations that tsc writes."""
    del folder
    with TemporaryDirectory() as place:
        words = ("-p", "tsconfig.build.json", "--emitDeclarationOnly", "--outDir", place)
        run([_tsc(), *words], at=node_toolchain.NODE_SDK, environment=node_toolchain.environment())
        return "\n".join(
            (
                typescript_page("@berth/plugin-sdk", Path(place) / "index.d.ts"),
                typescript_page("@berth/plugin-sdk/testing", Path(place) / "testing/index.d.ts"),
            )
        )


def rust(folder: Path) -> str:
    """Put what rustdoc makes of the crate into a folder; gives the page that leads there."""
    if rust_toolchain.CARGO is None:
        raise ToolMissingError("cargo is not on this machine")
    made = rust_toolchain.BUILDS / "doc"
    shutil.rmtree(made, ignore_errors=True)
    done = rust_toolchain.run_cargo(
        *("doc", "--quiet", "--locked", "--no-deps", "--lib"), folder=rust_toolchain.RUST_SDK, capture=True
    )
    if done.returncode:
        raise RuntimeError(f"cargo doc: {done.stdout}")
    shutil.copytree(made, folder / _TREE)
    return f"[The crate {_CRATE}]({_TREE}/{_CRATE}/index.html), by rustdoc.\n"


def java(folder: Path) -> str:
    """Put what javadoc makes of the package into a folder; gives the page that leads there."""
    reason = java_toolchain.missing() or ("" if shutil.which("javadoc") else "no javadoc on this machine")
    if reason:
        raise ToolMissingError(reason)
    _install(java_toolchain.install)
    java_toolchain.javadoc(folder / _TREE)
    return f"[The package {_PACKAGE}]({_TREE}/index.html), by javadoc.\n"


REFERENCES: Final[Mapping[str, tuple[str, Callable[[Path], str]]]] = MappingProxyType(
    {
        "go": ("Go", go),
        "typescript": ("TypeScript", typescript),
        "rust": ("Rust", rust),
        "java": ("Java", java),
    }
)
"""By the SDK's folder: its language, and what writes its reference."""


def write(folder: Path) -> None:
    """Write the page of each reference below a folder of pages."""
    for name, (language, made) in REFERENCES.items():
        place = folder / "plugin-sdk" / name
        place.mkdir(parents=True, exist_ok=True)
        try:
            text = made(place)
        except ToolMissingError as error:
            text = f"This site was built without it: {error}.\n"
            sys.stderr.write(f"No reference of the {language} SDK: {error}\n")
        (place / "reference.md").write_text(f"# {language} reference\n\n{text}", encoding="utf-8")


def _tsc() -> str:
    tools = list[str]()
    _install(lambda: tools.append(node_toolchain.tool("tsc")))
    return tools[0]


def _install(step: Callable[[], None]) -> None:
    try:
        step()
    except (RuntimeError, OSError) as error:
        raise ToolMissingError(str(error).strip()) from None


if __name__ == "__main__":
    write(Path(sys.argv[1]))
