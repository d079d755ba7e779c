"""What is applied to clusters: the overlays, each in one file, the definitions before their objects."""

import gzip
import hashlib
import io
import subprocess
import tarfile
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement

from tests.go_toolchain import ROOT
from tests.release.dist import constraints
from tests.release.manifests import (
    KUSTOMIZE,
    PROGRAMS,
    kustomized,
    packed,
    write_installations,
    write_kubectl_plugin,
)


@pytest.mark.parametrize(("file", "overlay"), [("install.yaml", "secondary"), ("replace.yaml", "default")])
def test_an_installation_is_one_file(tmp_path, file, overlay):
    """An installation is the overlay; the definitions, which outlive it, are in a file of their own."""
    write_installations(tmp_path, "1.2.3")

    text = (tmp_path / file).read_text()

    assert kustomized(KUSTOMIZE / "overlays" / overlay) == list(yaml.safe_load_all(text))
    kinds = list(yaml.safe_load_all((tmp_path / "crds.yaml").read_text()))
    assert kustomized(KUSTOMIZE / "crds") == kinds
    assert text.startswith(f"# Berth 1.2.3: the overlay {overlay}.")


def test_constraints_pin_what_others_make(tmp_path):
    """Each package that a distribution requires has one version, or one for each Python; ours have none."""
    constraints(tmp_path)
    lines = (tmp_path / "constraints.txt").read_text().splitlines()
    pinned = {Requirement(line).name for line in lines}
    required = {
        Requirement(one).name
        for path in (ROOT / "pyproject.toml", *ROOT.glob("core/*/pyproject.toml"))
        for one in tomllib.loads(path.read_text())["project"]["dependencies"]
    }

    assert {name for name in required if not name.startswith("berth")} <= pinned
    assert all("==" in line and not line.startswith("berth") for line in lines)


def test_krews_manifest_names_the_archive(tmp_path):
    """The manifest has the sum of the archive beside it, and its program is in the archive."""
    for name in ("plugin_proto", "scheduler"):
        (tmp_path / f"berth_{name}-1.2.3-py3-none-any.whl").write_bytes(name.encode())

    write_kubectl_plugin(tmp_path, "1.2.3")

    manifest = yaml.safe_load((tmp_path / "berth.krew.yaml").read_text())
    (platform,) = manifest["spec"]["platforms"]
    archive = tmp_path / platform["uri"].rpartition("/")[2]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    with tarfile.open(archive) as files:
        assert {0o755} == {files.getmember(name).mode for name in (platform["bin"], "kubectl_complete-berth")}
        assert "berth_scheduler-1.2.3-py3-none-any.whl" in files.getnames()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_archive_runs_the_wheels_program_of_its_name(tmp_path, program):
    """Through krew's link, too, and through the link to that link which completion needs."""
    (tmp_path / "store").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("plugin_proto", "scheduler"):
        (tmp_path / f"berth_{name}-1.2.3-py3-none-any.whl").write_bytes(b"")
    write_kubectl_plugin(tmp_path, "1.2.3")
    with tarfile.open(tmp_path / "kubectl-berth-1.2.3.tar.gz") as files:
        files.extractall(tmp_path / "store", filter="data")
    (tmp_path / "bin" / "kubectl-berth").symlink_to(tmp_path / "store" / "kubectl-berth")
    if program != "kubectl-berth":
        (tmp_path / "bin" / program).symlink_to("kubectl-berth")
    uv = tmp_path / "bin" / "uv"
    uv.write_text('#!/bin/sh\necho "$@"\n')
    uv.chmod(0o755)

    done = subprocess.run(
        [tmp_path / "bin" / program, "explain", ""],
        env={"PATH": f"{uv.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )

    wheel = tmp_path / "store" / "berth_scheduler-1.2.3-py3-none-any.whl"
    assert done.stdout.endswith(f"--from {wheel} {program} explain \n")


def test_an_archive_is_the_same_whenever_its_files_are():
    """Neither the clock nor the order of the files is in an archive."""
    first, second = packed({"a": b"1", "b": b"2"}), packed({"b": b"2", "a": b"1"})

    assert first == second
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(first))) as files:
        assert ["a", "b"] == files.getnames()
