"""`berth plugin init`: projects that build and pass their tests outside of this repository.

The one in Java does in tests/e2e/test_plugin_projects.py.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch

import pytest
import yaml
from click.testing import CliRunner

from berth.cli.main import main
from berth.conformance.project import IN_CHECKOUT, LANGUAGES
from tests.go_toolchain import GO_SDK, ROOT, run_go
from tests.node_toolchain import MODULES, install, run_node
from tests.rust_toolchain import RUST_SDK, needs_cargo, run_cargo

NAME = "rack-aware"


def make(folder, language, *options):
    """Run the command; where the project is, and what was said."""
    project = folder / NAME
    command = ["plugin", "init", NAME, "--language", language, "--directory", str(project), *options]
    outcome = CliRunner().invoke(main, command)
    assert 0 == outcome.exit_code, outcome.output
    return project


@pytest.mark.parametrize("local", [False, True])
def test_says_where_the_sdk_comes_from(tmp_path, local):
    """A project that takes the SDK from a registry names the option that takes it from this machine."""
    options = ["--sdk", str(GO_SDK)] if local else []
    command = ["plugin", "init", NAME, "--language", "go", "--directory", str(tmp_path / NAME), *options]

    outcome = CliRunner().invoke(main, command)

    assert local is ("--sdk" not in outcome.output)


def test_python(tmp_path):
    """The Python project's tests pass, with the SDK as it is installed here."""
    project = make(tmp_path, "python")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST")},
    )

    assert 0 == done.returncode, done.stdout
    assert "3 passed" in done.stdout


def test_go(tmp_path):
    """The Go project's tests pass against the SDK at a path."""
    project = make(tmp_path, "go", "--sdk", str(GO_SDK))

    done = run_go("test", "./...", folder=project, capture=True)

    assert 0 == done.returncode, done.stdout
    assert "example.com/rack-aware" in done.stdout


@needs_cargo
def test_rust(tmp_path):
    """The Rust project's tests pass against the SDK at a path; its copy has all that the SDK is built of."""
    project = make(tmp_path, "rust", "--sdk", str(RUST_SDK))
    shutil.copy(RUST_SDK / "template/Cargo.lock", project)  # versions that are at hand already
    built_of = [RUST_SDK / "Cargo.toml", *(path for path in RUST_SDK.glob("src/**/*") if path.is_file())]
    copied = {path: project / "sdk" / path.relative_to(RUST_SDK) for path in built_of}
    assert [] == [path for path, copy in copied.items() if copy.read_bytes() != path.read_bytes()]
    # Of the same files: at its own path the SDK is built once for all tests.
    manifest = project / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace('path = "sdk"', f'path = "{RUST_SDK}"'))

    done = run_cargo("test", folder=project, capture=True)

    assert 0 == done.returncode, done.stdout
    assert "3 passed" in done.stdout


async def test_typescript(tmp_path):
    """The TypeScript project's tests pass with the SDK among its modules."""
    await asyncio.to_thread(install)
    project = make(tmp_path, "typescript")
    (project / "node_modules").symlink_to(MODULES)

    done = await asyncio.to_thread(
        run_node, "--conditions=berth-source", "--test", f"{NAME}.test.ts", folder=project, capture=True
    )

    assert 0 == done.returncode, done.stdout
    assert "pass 3" in done.stdout


@pytest.mark.parametrize("language", LANGUAGES)
def test_whole(tmp_path, language):
    """A project names the plugin everywhere, and has an image file and a SchedulerPlugin for it."""
    project = make(tmp_path, language)
    texts = {
        str(path.relative_to(project)): path.read_text()
        for path in project.rglob("*")
        if path.is_file() and path.name != "go.sum"
    }

    assert [] == [name for name, text in texts.items() if "hello" in f"{name} {text}".lower()]
    assert NAME == yaml.safe_load(texts["plugin.yaml"])["metadata"]["name"]
    assert "plugin-sdk/" not in texts["Dockerfile"]
    assert "ENTRYPOINT" in texts["Dockerfile"]


SDK_FILES = {
    "python": "pyproject.toml",
    "go": "go.mod",
    "rust": "Cargo.toml",
    "java": "dev/berth/berth-plugin-sdk/0.1.0/berth-plugin-sdk-0.1.0.pom",
}


def an_sdk(folder, language):
    """A path that is taken for the language's SDK."""
    file = folder / SDK_FILES.get(language, "berth-plugin-sdk-0.1.0.tgz")
    file.parent.mkdir(parents=True)
    file.touch()
    if language == "python":
        checkout = folder.parents[1]
        (checkout / "proto/python").mkdir(parents=True)
        for beside in ("LICENSE", "proto/python/pyproject.toml"):
            (checkout / beside).touch()
    return folder if language in SDK_FILES else file


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("python", "for python give the folder plugin-sdk/python of a checkout"),
        ("typescript", "for typescript give the file berth-plugin-sdk-VERSION.tgz that `make dist` builds"),
        ("java", "for java give the folder maven that `make dist` builds"),
    ],
)
def test_what_is_no_sdk(tmp_path, language, words):
    """A folder that the language's tool could not take the SDK from is refused with what to give."""
    folder = str(tmp_path / NAME)
    sdk = ROOT / "plugin-sdk" if language == "python" else ROOT / "plugin-sdk" / language

    command = ["plugin", "init", NAME, "--language", language, "--directory", folder, "--sdk", str(sdk)]
    outcome = CliRunner().invoke(main, command)

    assert 2 == outcome.exit_code
    assert words in outcome.output


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_path_to_the_sdk(tmp_path, language):
    """--sdk is copied to where the language's tool reads it: an image is built of the project alone."""
    sdk = an_sdk(tmp_path / "plugin-sdk" / "somewhere", language)

    project = make(tmp_path, language, "--sdk", str(sdk))
    texts = [path.read_text() for path in project.rglob("*") if path.is_file()]
    place = sdk.name if sdk.is_file() else "sdk"

    assert place in (project / LANGUAGES[language].manifest).read_text()
    assert (project / place).exists()
    assert [] == [text for text in texts if str(tmp_path) in text]
    assert language != "python" or "COPY sdk /sdk" in (project / "Dockerfile").read_text()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_file_of_a_template(language):
    """A template's files are in its project, or are among those that a project has of its own."""
    template = IN_CHECKOUT / language / "template"
    listed = subprocess.run(
        ["git", "ls-files"], cwd=template, capture_output=True, text=True, check=True
    ).stdout.split()
    own = ("README.md", "Dockerfile", "image.toml", "Cargo.lock")

    assert set(LANGUAGES[language].files) == {
        name for name in listed if not any(fnmatch(name, each) for each in own)
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_distributions(language):
    """The wheel with the command and the archive that it is built of have the template's files."""
    wheel = tomllib.loads((ROOT / "core/conformance/pyproject.toml").read_text())
    archive = tomllib.loads((ROOT / "pyproject.toml").read_text())
    places = [f"plugin-sdk/{language}/template/{name}" for name in LANGUAGES[language].files]
    targets = wheel["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]

    assert places == [
        path
        for path in archive["tool"]["hatch"]["build"]["targets"]["sdist"]["force-include"]
        if path in places
    ]
    assert [f"berth/conformance/templates/{language}/{name}" for name in LANGUAGES[language].files] == [
        targets[f"../../{place}"] for place in places
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["No Name"], "use small letters, digits and dashes"),
        (["here"], "is there already"),
        (["fine", "--sdk", "nowhere"], "--sdk nowhere: there is no such file or folder"),
    ],
)
def test_refusals(tmp_path, monkeypatch, arguments, said):
    """What can't be made is refused with the reason, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()

    outcome = CliRunner().invoke(main, ["plugin", "init", *arguments])

    assert 2 == outcome.exit_code
    assert said in outcome.output
    assert [tmp_path / "here"] == list(tmp_path.iterdir())
