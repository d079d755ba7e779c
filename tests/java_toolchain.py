"""The Java modules of this repository: the JDK and Maven of this machine, for tests and lint.

What is installed is kept in `build/java`, so that a build that was done before is quick.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.go_toolchain import ROOT

JAVA_SDK = ROOT / "plugin-sdk/java"
TEMPLATE = JAVA_SDK / "template"
MODULES = (JAVA_SDK, TEMPLATE, ROOT / "out-of-tree-plugins/data-locality")
"""The modules with tests of their own; the last two are programs."""
BUILD = ROOT / "build/java"
FORMATTER = "com.spotify.fmt:fmt-maven-plugin"
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""How programs are started that are done soon: their compiler does not optimise."""


def missing() -> str:
    """Why Java can't be built here; empty where it can."""
    lacking = [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]
    return f"no {', '.join(lacking)} on this machine" if lacking else ""


def run_mvn(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run `mvn` in a folder; its output comes back as one text."""
    with alone():
        return _mvn(*arguments, folder=folder)


def environment() -> dict[str, str]:
    """The environment with a `mvn` first in the path that installs here, and whose tests are done soon."""
    programs = BUILD / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    options = f'"-Dmaven.repo.local={_repository()}" "-DargLine={" ".join(JVM)}"'
    script = f'#!/bin/sh\nexec "{shutil.which("mvn")}" {options} "$@"\n'
    if not (programs / "mvn").is_file() or (programs / "mvn").read_text() != script:
        made = programs / f"mvn.{os.getpid()}"
        made.write_text(script)
        made.chmod(0o700)
        made.replace(programs / "mvn")
    path = os.pathsep.join((str(programs), os.environ["PATH"]))
    return {**os.environ, "MAVEN_OPTS": " ".join(JVM), "PATH": path}


def install() -> None:
    """Have the SDK installed and the programs built, once for each state of their sources.

    Raises: RuntimeError with what Maven said.
    """
    stamp, sources = BUILD / "built-of", _digest()
    with alone():
        if stamp.is_file() and stamp.read_text() == sources:
            return
        done = _mvn("install", "-DskipTests", folder=ROOT)
        if done.returncode:
            raise RuntimeError(f"mvn install: {done.stdout}")
        stamp.write_text(sources)


def javadoc(folder: Path) -> None:
    """Write what javadoc makes of the SDK into a folder, once the SDK is installed.

    Raises: RuntimeError with what javadoc said.
    """
    words = ("-quiet", "-notimestamp", "-Xdoclint:none", "-classpath", str(TEMPLATE / "target/lib/*"))
    sources = ("-sourcepath", str(JAVA_SDK / "src/main/java"), "-subpackages", "dev.berth.plugin")
    done = subprocess.run(
        ["javadoc", *words, *sources, "-d", str(folder)], check=False, text=True, capture_output=True
    )
    if done.returncode:
        raise RuntimeError(f"javadoc: {done.stdout}{done.stderr}")


def program(folder: Path) -> list[str]:
    """How the program of a module is started; `install` has built it."""
    return [str(shutil.which("java")), *JVM, "-jar", str(folder / "target/plugin.jar")]


def every_point() -> list[str]:
    """How the plugin with every point is started, which the SDK's own tests are about."""
    return _of_the_tests("Slots", *JVM)


def mistakes() -> list[str]:
    """How a plugin with the usual mistake that MISTAKE names is started."""
    return _of_the_tests("Mistakes", *JVM)


def every_tenth() -> list[str]:
    """How the plugin of the sidecar benchmark is started, as in an image, but for its name and address."""
    return _of_the_tests("EveryTenth", f"@{TEMPLATE / 'jvm.options'}")


def _of_the_tests(name: str, *flags: str) -> list[str]:
    """A program of the SDK's tests, with the libraries that the template has."""
    classes = f"{JAVA_SDK / 'target/test-classes'}:{TEMPLATE / 'target/lib'}/*"
    return [str(shutil.which("java")), *flags, "-cp", classes, f"dev.berth.plugin.{name}"]


def _mvn(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["mvn", "--batch-mode", "--quiet", *arguments],
        cwd=folder,
        env=environment(),
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _repository() -> Path:
    """Maven's repository of this checkout: the user's, but for what is installed from here.

    Two checkouts would otherwise build against each other's SDK, which has the same version.
    """
    own, users = BUILD / "repository", Path.home() / ".m2/repository"
    (own / "dev").mkdir(parents=True, exist_ok=True)
    for group in {"com", "io", "org"} | {path.name for path in users.glob("*") if path.is_dir()}:
        (users / group).mkdir(parents=True, exist_ok=True)
        if group != "dev" and not (own / group).exists():
            (own / group).symlink_to(users / group)
    return own


def _digest() -> str:
    """One short text for all that is built."""
    found = hashlib.sha256((ROOT / "pom.xml").read_bytes())
    for path in sorted(path for top in (*MODULES, ROOT / "proto") for path in top.rglob("*")):
        if path.is_file() and "target" not in path.parts:
            found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()


@contextmanager
def alone() -> Iterator[None]:
    """Keep other test processes from building the same modules at the same time."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Hold the Java modules to google-java-format and to every lint of javac."""
    if reason := missing():
        print(f"Java is not looked at: {reason}")  # noqa: T201 - a command
        return 0
    done = run_mvn(f"{FORMATTER}:check", "test-compile")
    sys.stderr.write(done.stdout if done.returncode else "")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
