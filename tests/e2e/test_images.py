"""What the image files install runs: in an empty environment, by an unprivileged user, on a read-only tree.

No image engine is needed: what the image files copy is copied here, and what they run is run.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.go_toolchain import run_go
from tests.java_toolchain import alone, missing
from tests.java_toolchain import environment as java_environment
from tests.node_toolchain import NODE, NPM
from tests.node_toolchain import environment as npm_environment
from tests.suite import BUILD_SECONDS, PATIENCE_SECONDS

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
FILES = {
    **{path.stem: path for path in ROOT.glob("core/images/*.Dockerfile")},
    **{path.parent.name: path for path in ROOT.glob("out-of-tree-plugins/*/Dockerfile")},
    "hello in Python": ROOT / "plugin-sdk/python/template/Dockerfile",
    "hello in Go": ROOT / "plugin-sdk/go/template/Dockerfile",
    "hello in Rust": ROOT / "plugin-sdk/rust/template/Dockerfile",
    "hello in TypeScript": ROOT / "plugin-sdk/typescript/template/Dockerfile",
    "hello in Java": ROOT / "plugin-sdk/java/template/Dockerfile",
}
NOBODY = 65532


@pytest.fixture
def open_folder():
    """A folder that other users may enter, as pytest's own may not be."""
    folder = Path(tempfile.mkdtemp(prefix="berth-image-"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    shutil.rmtree(folder)


def installed(dockerfile, folder):
    """Install what an image file's build stage does; gives the environment."""
    words = re.search(r"^RUN core/images/install.sh (\S+) (.+)$", dockerfile.read_text(), re.MULTILINE)
    target = folder / words[1].lstrip("/")
    target.parent.mkdir(parents=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "UV_PYTHON": interpreter()[0], "UV_PYTHON_DOWNLOADS": "never"}
    environment.pop("VIRTUAL_ENV", None)
    command = [ROOT / "core/images/install.sh", target, *words[2].split()]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS
    )
    assert 0 == done.returncode, done.stderr
    subprocess.run(["chmod", "-R", "a-w,a+rX", folder], check=True)
    return target


def interpreter():
    """Give a Python that other users can reach, ours or the system's, and whether there is one."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        program = Path(candidate).resolve()
        if program.exists() and all(folder.stat().st_mode & 0o001 for folder in program.parents):
            minor = "import sys; print(sys.version_info >= (3, 11))"
            if (
                "True"
                in subprocess.run([program, "-c", minor], capture_output=True, text=True, check=False).stdout
            ):
                return str(program), True
    return sys.executable, False


def as_nobody(program, *arguments, folder="/"):
    """Run a program as an image does: no home, nothing to write to, no rights where we can give them up."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    user = (
        {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        if os.geteuid() == 0 and interpreter()[1]
        else {}
    )
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        **user,
    )


@pytest.mark.parametrize(
    ("image", "program", "arguments", "shown"),
    [
        ("queues", "berth-queues", ("--help",), "--kinds"),
        ("gpu-share", "berth-gpu-share", ("--help",), "--policy"),
        ("http-extender", "berth-http-extender", ("--help",), "--name"),
    ],
)
def test_runs(open_folder, image, program, arguments, shown):
    """The entry point starts, and needs nothing that is not in the image."""
    environment = installed(FILES[image], open_folder)
    done = as_nobody(environment / "bin" / program, *arguments)
    assert (0, True) == (done.returncode, shown in done.stdout), done.stderr


def test_a_scheduler_has_what_it_needs_and_no_more(open_folder):
    """The scheduler reads its flags, and has neither the operator nor anything that only tests need."""
    environment = installed(FILES["scheduler"], open_folder)

    done = as_nobody(environment / "bin" / "berth", "scheduler", "--secure-port=0")
    operator = as_nobody(environment / "bin" / "berth", "operator", "--scheduler-image=x")

    assert "no configuration has been provided" in done.stderr
    assert "it is in berth-operator" in operator.stderr
    assert not (environment / "bin" / "pytest").exists()


def test_an_operator_has_what_it_needs(open_folder):
    """The operator gets as far as its kubeconfig."""
    environment = installed(FILES["operator"], open_folder)

    done = as_nobody(
        environment / "bin" / "berth", "operator", "--scheduler-image=x", "--kubeconfig=/nowhere"
    )

    assert (2, True) == (done.returncode, "/nowhere" in done.stderr), done.stderr


def copied(dockerfile, folder):
    """Copy what an image file's build stage does, as far as the build's context has it."""
    left_out = shutil.ignore_patterns(
        *(line.removeprefix("**/") for line in (ROOT / ".dockerignore").read_text().split())
    )
    for line in re.findall(r"^COPY (?!--)(.+)$", dockerfile.read_text(), re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            place = folder / (f"{target}{source}" if target.endswith("/") else target)
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=left_out)
            else:
                shutil.copy(ROOT / source, place)
    return folder


def steps(dockerfile, word):
    """Give what follows a word of an image file, in the order of the file."""
    return re.findall(rf"^{word} (.+)$", dockerfile.read_text(), re.MULTILINE)


def reachable(program, folder):
    """Give a program where every user can reach it: where it is, or a copy in the folder."""
    if all(place.stat().st_mode & 0o001 for place in Path(program).resolve().parents):
        return program
    return shutil.copy(program, folder)


UNSERVED = "only unix:/path sockets are served without certificates"
"""What a plugin complains of that has started, and was given an address of the network."""


def test_go(open_folder):
    """The Go program is one static file, built of what the image file copies, and starts."""
    file = FILES["coscheduling"]
    source = copied(file, open_folder / "source")
    folder = source / Path(steps(file, "WORKDIR")[-1]).relative_to("/source")
    (settings,) = steps(file, "ENV")
    (command,) = steps(file, "RUN")
    program = open_folder / "plugin"
    words = [str(program) if word == "/plugin" else word for word in shlex.split(command)]
    environment = dict(word.split("=", 1) for word in settings.split())
    done = run_go(*words[1:], folder=folder, capture=True, **environment)
    assert (0, "go") == (done.returncode, words[0]), done.stdout
    shutil.rmtree(source)

    done = as_nobody(program, "-address", "127.0.0.1:0")

    assert (2, True) == (done.returncode, UNSERVED in done.stderr), done.stderr
    # A program that asks for a loader names it; `FROM scratch` has none.
    assert b"/lib64/ld-linux" not in program.read_bytes()
    assert f'["{steps(file, "COPY --from=build")[-1].split()[1]}"]' == steps(file, "ENTRYPOINT")[0]


def test_typescript(open_folder):
    """The TypeScript program starts from what the image file copies, and the packages that it installs."""
    file = FILES["load-aware"]
    source = copied(file, open_folder / "plugin")
    (command,) = steps(file, "RUN")
    assert ["npm", "ci"] == shlex.split(command)[:2]
    done = subprocess.run(
        [NODE, NPM, *shlex.split(command)[1:]],
        cwd=source,
        env=npm_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_SECONDS,
    )
    assert 0 == done.returncode, done.stderr
    subprocess.run(["chmod", "-R", "a-w,a+rX", source], check=True)
    folder = open_folder / steps(file, "WORKDIR")[-1].lstrip("/")
    node, *arguments = json.loads(steps(file, "ENTRYPOINT")[0])

    done = as_nobody(reachable(NODE, open_folder), *arguments, "--address", "127.0.0.1:0", folder=folder)

    assert (2, True) == (done.returncode, UNSERVED in done.stderr), done.stderr
    assert "node" == node
    # Nothing that only developers need.
    assert not (source / "node_modules/typescript").exists()


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_java(open_folder):
    """The Java program starts from what the image file builds of what it copies."""
    file = FILES["data-locality"]
    source = copied(file, open_folder / "source")
    (command,) = steps(file, "RUN")
    with alone():  # it installs the SDK
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=source,
            env=java_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILD_SECONDS,
        )
    assert 0 == done.returncode, done.stdout
    for copy in steps(file, "COPY --from=build"):
        made, target = (path.removeprefix("/source/") for path in copy.split())
        place = open_folder / target.strip("/") / ("" if Path(made).name == "lib" else Path(made).name)
        place.parent.mkdir(exist_ok=True)
        shutil.move(source / made, place)
    subprocess.run(["chmod", "-R", "a-w,a+rX", open_folder / "plugin"], check=True)
    java, *arguments = json.loads(steps(file, "ENTRYPOINT")[0])
    where = [argument.replace("/plugin/", f"{open_folder}/plugin/") for argument in arguments]

    done = as_nobody(shutil.which("java"), *where, "--address", "127.0.0.1:0")

    assert (2, True) == (done.returncode, UNSERVED in done.stderr), done.stderr
    assert "java" == java


PINNED = re.compile(r"[a-z-]+:\d+\.\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}")


def bases(file):
    """Give the images that an image file builds on."""
    return [step.split()[0] for step in steps(file, "FROM") if step != "scratch"]


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_image_file(file):
    """An image is built of bases with version and digest, in stages, and runs as no user of the machine."""
    text = file.read_text()

    assert [] == [base for base in bases(file) if not PINNED.fullmatch(base)]
    assert f"USER {NOBODY}:{NOBODY}" in text
    assert text.index("USER ") > text.rindex("COPY ")


def test_one_digest_for_a_base():
    """All image files have one version and digest of each base."""
    found = {base for file in FILES.values() for base in bases(file)}

    assert sorted({base.partition(":")[0] for base in found}) == sorted(
        base.partition(":")[0] for base in found
    )
