"""A plugin's project, made of an SDK's template: it builds and is tested in a folder of its own.

The template of each language is the one in plugin-sdk/LANGUAGE/template. A copy gets the plugin's name, the
SDK from a registry or a copy of this machine's, an image file that needs that folder alone, and a
SchedulerPlugin.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from berth.conformance.project_files import (
    FROM_COPY,
    FROM_REGISTRY,
    IMAGES,
    README,
    SCHEDULER_PLUGIN,
)
from berth.version import version

TEMPLATES = Path(__file__).parent / "templates"
IN_CHECKOUT = Path(__file__).parents[5] / "plugin-sdk"
NOT_COPIED = ("template", "tests", "examples", "target", "node_modules", "__pycache__", ".*")
NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


class ProjectError(Exception):
    """The project can't be made, and why."""


class Language(NamedTuple):
    """How a template of that language is made a project.

    `files` are those of the template; `module` is what a file or package is called for a plugin's name;
    `depend` gives, for a text of the template and the SDK's place in the project or None, the text that has
    the SDK from there. `has_sdk` says whether a path is one that the language's tool takes the SDK from;
    `sdk_is` names what is.
    """

    files: tuple[str, ...]
    module: Callable[[str], str]
    manifest: str
    depend: Callable[[str, str | None], str]
    commands: tuple[str, ...]
    has_sdk: Callable[[Path], bool]
    sdk_is: str


def _python(text: str, sdk: str | None) -> str:
    if sdk is None:
        return text
    return f"""{text}
[tool.uv.sources]
berth-plugin-sdk = {{ path = "{sdk}/python" }}
berth-plugin-proto = {{ path = "{sdk}/proto" }}
"""


def _go(text: str, sdk: str | None) -> str:
    head = text[: text.index("// Beside the SDK's own source")]
    return head.rstrip() + "\n" if sdk is None else f"{head}replace berth.dev/plugin-sdk/go => ./{sdk}\n"


def _rust(text: str, sdk: str | None) -> str:
    wanted = f'"{version()}"' if sdk is None else f'{{ path = "{sdk}" }}'
    return text.replace('{ path = ".." }', wanted)


def _typescript(text: str, sdk: str | None) -> str:
    return text if sdk is None else re.sub(r'(?<="@berth/plugin-sdk": )"[^"]*"', f'"file:{sdk}"', text)


def _java(text: str, sdk: str | None) -> str:
    if sdk is None:
        return text
    place = f"<repository><id>berth</id><url>file://${{project.basedir}}/{sdk}</url></repository>"
    return text.replace("  <dependencies>", f"  <repositories>{place}</repositories>\n\n  <dependencies>", 1)


LANGUAGES: Mapping[str, Language] = {
    "python": Language(
        ("hello.py", "test_hello.py", "pyproject.toml"),
        lambda name: name.replace("-", "_"),
        "pyproject.toml",
        _python,
        ("uv sync", "uv run pytest", "uv run python {module}.py --address {address}"),
        lambda sdk: (sdk / "pyproject.toml").is_file(),
        "the folder plugin-sdk/python of a checkout",
    ),
    "go": Language(
        ("hello.go", "hello_test.go", "go.mod", "go.sum"),
        lambda name: name,
        "go.mod",
        _go,
        ("go mod tidy", "go test ./...", "go run . -address {address}"),
        lambda sdk: (sdk / "go.mod").is_file(),
        "the folder plugin-sdk/go of a checkout",
    ),
    "typescript": Language(
        ("hello.ts", "hello.test.ts", "package.json", "tsconfig.json"),
        lambda name: name,
        "package.json",
        _typescript,
        ("npm install", "npm test", "node {module}.ts --address {address}"),
        lambda sdk: sdk.is_file() and sdk.suffix == ".tgz",
        "the file berth-plugin-sdk-VERSION.tgz that `make dist` builds in a checkout",
    ),
    "rust": Language(
        ("Cargo.toml", "src/main.rs"),
        lambda name: name,
        "Cargo.toml",
        _rust,
        ("cargo build", "cargo test", "cargo run -- --address {address}"),
        lambda sdk: (sdk / "Cargo.toml").is_file(),
        "the folder plugin-sdk/rust of a checkout",
    ),
    "java": Language(
        ("pom.xml", "jvm.options", "src/main/java/hello/Hello.java", "src/test/java/hello/HelloTest.java"),
        lambda name: name.replace("-", ""),
        "pom.xml",
        _java,
        (
            "mvn package",
            "mvn test",
            "java @jvm.options -jar target/plugin.jar --address {address}",
        ),
        lambda sdk: (sdk / "dev/berth/berth-plugin-sdk").is_dir(),
        "the folder maven that `make dist` builds in a checkout",
    ),
}


def create(name: str, language: str, folder: Path, sdk: Path | None = None) -> None:
    """Write the project of a plugin into a folder that is not there yet.

    Raises: ProjectError: the name is no DNS label, the folder is there, or there is no such SDK.
    """
    if not NAME.fullmatch(name):
        raise ProjectError(f"{name!r} is no name of a plugin: use small letters, digits and dashes")
    if folder.exists():
        raise ProjectError(f"{folder} is there already: remove it, or give another one with --directory")
    if sdk is not None and not sdk.exists():
        raise ProjectError(f"--sdk {sdk}: there is no such file or folder")
    if sdk is not None and not LANGUAGES[language].has_sdk(sdk):
        raise ProjectError(f"--sdk {sdk}: for {language} give {LANGUAGES[language].sdk_is}")
    for place, text in files(name, language, None if sdk is None else _place(sdk)):
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    if sdk is not None:
        _copy_sdk(language, sdk, folder / _place(sdk))


def _place(sdk: Path) -> str:
    """Where the project has the SDK."""
    return sdk.name if sdk.is_file() else "sdk"


def _copy_sdk(language: str, sdk: Path, target: Path) -> None:
    """Copy it: an image is built of the project's folder alone, and a checkout may go."""
    if sdk.is_file():
        shutil.copyfile(sdk, target)
        return
    checkout = sdk.resolve().parents[1]
    proto = checkout / "proto/python"
    parts = {target / "python": sdk, target / "proto": proto} if language == "python" else {target: sdk}
    for copied, part in parts.items():
        shutil.copytree(part, copied, ignore=shutil.ignore_patterns(*NOT_COPIED))
    if language == "python":
        shutil.copyfile(checkout / "LICENSE", target / "LICENSE")
        for copied in parts:
            _outside_of_checkout(copied / "pyproject.toml")


def _outside_of_checkout(manifest: Path) -> None:
    """Let a copied package find what the checkout has above it: its licence, and the stubs."""
    text = manifest.read_text(encoding="utf-8")
    text = text.replace("{ workspace = true }", '{ path = "../proto" }').replace(
        "../../LICENSE", "../LICENSE"
    )
    manifest.write_text(text, encoding="utf-8")


def files(name: str, language: str, sdk: str | None) -> Iterator[tuple[str, str]]:
    """Yield the project's files: path and text. `sdk` is where in the project a copy of the SDK is."""
    known, template = LANGUAGES[language], _template(language)
    module = known.module(name)
    for place in known.files:
        text = (template / place).read_text(encoding="utf-8")
        if place == known.manifest:
            text = known.depend(text, sdk)
        # go.sum has digests, in which any word may stand by chance.
        yield _renamed_path(place, name, module), text if place == "go.sum" else _renamed(text, name, module)
    said = {"name": name, "module": module, "address": f"unix:/tmp/{name}/plugin.sock"}
    build, test, run = (each.format(**said) for each in known.commands)
    install = FROM_REGISTRY if sdk is None else FROM_COPY
    yield "Dockerfile", IMAGES[language].format(**said, install=install)
    yield "plugin.yaml", SCHEDULER_PLUGIN.format(**said)
    yield "README.md", README.format(**said, build=build, test=test, run=run)


def _template(language: str) -> Path:
    installed = TEMPLATES / language
    return installed if installed.is_dir() else IN_CHECKOUT / language / "template"


def _renamed_path(place: str, name: str, module: str) -> str:
    return place.replace("hello", module).replace("Hello", _class_name(name))


def _renamed(text: str, name: str, module: str) -> str:
    """The text with the plugin's name; what a file or package is called has the module's."""
    text = re.sub(r'(?<=from )hello(?= import)|(?<=package )hello(?=;)|(?<="\./)hello', module, text)
    text = re.sub(r"\bhello(?=\.(py|ts|Hello)\b)", module, text)
    return re.sub(r"\bHello(?=Test\b|\b)", _class_name(name), re.sub(r"\bhello\b", name, text))


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))
