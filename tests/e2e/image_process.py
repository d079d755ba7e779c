"""A process of an image, from its unpacked layout: read-only root, user 65532, and no image engine.

User and mount namespaces do what a container engine does. The user who runs the tests becomes 65532: files of
that user are the process's own there, and root's rights are given up with the outer namespace.
"""

import os
import shlex
import shutil
import subprocess
from contextlib import contextmanager
from functools import cache

from berth.sandbox.containers.folders import ROOT_VARIABLE
from berth_images.layout import unpack
from berth_images.platforms import of_this_machine

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
mount -o remount,bind,ro "$root"
unset SHARED
exec unshare --user --map-user={user} --map-group={user} --root="$root" --wd=/ -- "$@"'
SHARED=${{{pod}:+$(dirname "${pod}")}} exec env {variables} {unshare} --user --map-root-user --mount -- \\
    /bin/sh -c "$inner" sh {root} {entrypoint} "$@"
"""


def every():
    """Whether every image is built and started, and not the scheduler's alone."""
    return "BERTH_EVERY_IMAGE" in os.environ


@cache
def missing():
    """A sentence on why no image's process can be started here; empty where it can."""
    program = shutil.which("unshare")
    if program is None:
        return "unshare (util-linux) is not on this machine"
    inner = f"unshare --user --map-user={USER} --map-group={USER} true"
    done = subprocess.run(
        [program, "--user", "--map-root-user", "--mount", "sh", "-c", inner],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no user namespaces: {done.stderr.strip()}" if done.returncode else ""


def unpacked(layout, folder):
    """Unpack a layout's image for this machine, and write the program that starts its process beside it."""
    root = folder / "root"
    root.mkdir(parents=True)
    config = unpack(layout, of_this_machine(), root)["config"]
    program = folder / config["Entrypoint"][0].rpartition("/")[2]
    text = SCRIPT.format(
        root=shlex.quote(str(root)),
        user=USER,
        pod=ROOT_VARIABLE,
        variables=shlex.join(config["Env"]),
        unshare=shutil.which("unshare"),
        entrypoint=shlex.join(config["Entrypoint"]),
    )
    program.write_text(text)
    program.chmod(0o755)
    return program


def output(program, *arguments):
    """Run an image's process to its end."""
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)


@contextmanager
def started(program, *arguments, shared):
    """Run an image's process, which sees a folder under its name here, until the block ends."""
    environment = {**os.environ, ROOT_VARIABLE: f"{shared}/0"}
    process = subprocess.Popen([program, *arguments], env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)
