"""A process of an image, from its unpacked layout: read-only root, user 65532, and no image engine.

User and mount namespaces do what a container engine does. The user who runs the tests becomes 65532: files of
that user are the process's own there, and root's rights are given up with the outer namespace. What is built
for another platform is emulated.
"""

import os
import shlex
import shutil
import subprocess
import time
from contextlib import contextmanager
from functools import cache

from berth.sandbox.containers.folders import ROOT_VARIABLE
from berth_images.layout import unpack
from berth_images.platforms import of_this_machine
from tests.e2e.emulation import REGISTER, emulator, rule

USER = 65532
SCRIPT = """\
#!/bin/sh
# NAME ARGUMENT ...: starts the image that is unpacked in {root}, with the pod's folder where it is here.
set -eu
inner='set -eu
root=$1
shift
mount --bind "$root" "$root"
mount -t tmpfs -o mode=1777 none "$root/tmp"
for folder in /proc /dev $SHARED; do
    mkdir -p "$root$folder"
    mount --rbind "$folder" "$root$folder"
done
if [ -n "$RULE" ]; then
    {register}
fi
mount -o remount,bind,ro "$root"
unset SHARED RULE
exec unshare --user --map-user={user} --map-group={user} --root="$root" --wd=/ -- "$@"'
export RULE={rule} SHARED="${{{pod}:+$(dirname "${pod}")}}"
exec env {variables} {unshare} --user --map-root-user --mount -- \\
    /bin/sh -c "$inner" sh {root} {entrypoint} "$@"
"""
SECONDS, EMULATED_SECONDS = 60, 900
"""How long a process may take to its end; what is emulated takes ten times the work."""


def every():
    """Whether every image is built and started, and not the scheduler's alone."""
    return "BERTH_EVERY_IMAGE" in os.environ


@cache
def missing(platform=None):
    """A sentence on why no image's process can be started here; empty where it can.

    Without a platform, it is that of this machine.
    """
    if shutil.which("unshare") is None:
        return "unshare (util-linux) is not on this machine"
    if refused := _refused(f"unshare --user --map-user={USER} --map-group={USER} true"):
        return f"no user namespaces: {refused}"
    if platform in (None, of_this_machine()):
        return ""
    if not (given := rule(platform)):
        return f"{emulator(platform)} (qemu-user-static) is not on this machine"
    refused = _refused(f"set -e\nRULE={shlex.quote(given)}\n{REGISTER}")
    return f"no binfmt_misc in user namespaces, which Linux has since 6.7: {refused}" if refused else ""


def _refused(script):
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def unpacked(layout, folder, platform=None):
    """Unpack a layout's image, and write the program that starts its process beside it."""
    root = folder / "root"
    root.mkdir(parents=True)
    config = unpack(layout, platform or of_this_machine(), root)["config"]
    program = folder / config["Entrypoint"][0].rpartition("/")[2]
    text = SCRIPT.format(
        root=shlex.quote(str(root)),
        user=USER,
        pod=ROOT_VARIABLE,
        register=REGISTER,
        rule=shlex.quote(rule(platform or of_this_machine())),
        variables=shlex.join(config["Env"]),
        unshare=shutil.which("unshare"),
        entrypoint=shlex.join(config["Entrypoint"]),
    )
    program.write_text(text)
    program.chmod(0o755)
    return program


def output(program, *arguments, seconds=SECONDS):
    """Run an image's process to its end."""
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=seconds)


@contextmanager
def started(program, *arguments, shared, log=None):
    """Run an image's process, which sees a folder under its name here, until the block ends."""
    environment = {**os.environ, ROOT_VARIABLE: f"{shared}/0"}
    process = subprocess.Popen([program, *arguments], env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(EMULATED_SECONDS)


def until_there(path, process, seconds=SECONDS):
    """Wait for a file that a process makes, such as its socket."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, f"the process ended with status {process.returncode}"
        assert time.monotonic() < deadline, f"no {path} after {seconds} seconds"
        time.sleep(0.1)
