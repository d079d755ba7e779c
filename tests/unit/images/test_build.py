"""From a recipe to a layout, on a base of packages that the test makes."""

import json

import pytest
from click.testing import CliRunner

from berth_images import bases, cli
from berth_images import build as building
from berth_images.build import build
from berth_images.errors import ImageError
from berth_images.layout import unpack
from berth_images.platforms import PLATFORMS
from tests.unit.images.packages import deb, file

RECIPE = """\
name = "berth/hello"
title = "hello"
base = "static"
entrypoint = ["/plugin"]
command = ["--serve"]
environment = {COLOUR = "green"}

[[files]]
source = "plugin-{architecture}"
target = "/plugin"
executable = true
"""


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """A folder with a recipe and its files; every Debian package has one file, two authorities among them."""

    def fetched(package):
        content = [
            file(f"./usr/share/doc/{package.name}/copyright"),
            file(f"./usr/share/doc/{package.name}/NEWS"),
        ]
        if package.name == "ca-certificates":
            content += [
                file(f"./usr/share/ca-certificates/mozilla/{name}.crt", name.encode()) for name in "BA"
            ]
        return deb(package.name, content)

    monkeypatch.setattr(bases, "fetched", fetched)
    # What is made of a test's packages is no other test's base.
    monkeypatch.setattr(bases, "_layer", bases._layer.__wrapped__)
    monkeypatch.setattr(building, "_packed_base", building._packed_base.__wrapped__)
    (tmp_path / "image.toml").write_text(RECIPE)
    for platform in PLATFORMS:
        (tmp_path / f"plugin-{platform.architecture}").write_text(platform.name)
    return tmp_path


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_built_twice_is_the_same(inputs):
    """Two builds give the same files: layout, bills of materials and provenance."""
    for name in "ab":
        build(inputs / "image.toml", inputs / name, "1", PLATFORMS)

    assert files(inputs / "a") == files(inputs / "b")


@pytest.fixture
def unpacked(inputs):
    """The root and the configuration of the image for arm64."""
    build(inputs / "image.toml", inputs / "out", "1", PLATFORMS)
    root = inputs / "root"
    root.mkdir()
    return root, unpack(inputs / "out/hello", PLATFORMS[1], root)


def test_an_image_has_its_platforms_files(unpacked):
    """{architecture} in a name stands for the platform's."""
    root, _ = unpacked

    assert ("linux/arm64", 0o755) == ((root / "plugin").read_text(), (root / "plugin").stat().st_mode & 0o777)


def test_an_image_runs_as_no_user_of_the_machine(unpacked):
    """User, program, variables and labels are those of the recipe."""
    _, configuration = unpacked
    config = configuration["config"]

    assert ("65532:65532", ["/plugin"], ["--serve"]) == (config["User"], config["Entrypoint"], config["Cmd"])
    assert "COLOUR=green" in config["Env"]
    assert ("hello", "1") == tuple(
        config["Labels"][f"org.opencontainers.image.{key}"] for key in ("title", "version")
    )


def test_what_scripts_of_packages_would_write_is_there(unpacked):
    """Users, the bundle of certificates in the order of their names, and a folder that all may write to."""
    root, _ = unpacked

    assert "nonroot:x:65532:65532" in (root / "etc/passwd").read_text()
    assert "AB" == (root / "etc/ssl/certs/ca-certificates.crt").read_text()
    assert 0o1777 == (root / "tmp").stat().st_mode & 0o7777


def test_licences_stay_and_other_documents_do_not(unpacked):
    """The text of each package's licence is in the image, and its control file where scanners look."""
    root, _ = unpacked

    assert (root / "usr/share/doc/tzdata/copyright").is_file()
    assert not (root / "usr/share/doc/tzdata/NEWS").exists()
    assert "Package: tzdata" in (root / "var/lib/dpkg/status.d/tzdata").read_text()


def test_a_bill_of_materials_names_each_package(inputs):
    """SPDX: the image contains each Debian package, with its address and digest."""
    build(inputs / "image.toml", inputs / "out", "1", PLATFORMS)
    bill = json.loads((inputs / "out/hello.amd64.spdx.json").read_text())
    (tzdata,) = (each for each in bill["packages"] if each["name"] == "tzdata")
    (locked,) = (each for each in bases.lock().packages["amd64"] if each.name == "tzdata")

    assert ("SPDX-2.3", locked.version) == (bill["spdxVersion"], tzdata["versionInfo"])
    assert [{"algorithm": "SHA256", "checksumValue": locked.sha256}] == tzdata["checksums"]
    assert {each["relatedSpdxElement"] for each in bill["relationships"]} == {
        each["SPDXID"] for each in bill["packages"]
    }


def test_the_provenance_is_of_the_layouts_index(inputs):
    """in-toto: the subject is what index.json leads to, and what was packed has its digest."""
    digest = build(inputs / "image.toml", inputs / "out", "1", PLATFORMS).digest
    statement = json.loads((inputs / "out/hello.provenance.json").read_text())
    dependencies = statement["predicate"]["buildDefinition"]["resolvedDependencies"]

    assert digest == f"sha256:{statement['subject'][0]['digest']['sha256']}"
    assert {"image.toml", "plugin-amd64", "plugin-arm64"} == {
        each["name"] for each in dependencies if "name" in each
    }


def test_a_file_that_is_absent_is_named(inputs):
    """The error names the file and the recipe that packs it."""
    (inputs / "plugin-arm64").unlink()

    with pytest.raises(ImageError, match=r"plugin-arm64: No such file or directory; .*image.toml packs it"):
        build(inputs / "image.toml", inputs / "out", "1", PLATFORMS)


def test_a_build_that_fails_leaves_what_was_there(inputs):
    """The layout of an earlier build stays whole, and nothing stands beside it."""
    build(inputs / "image.toml", inputs / "out", "1", PLATFORMS)
    before = files(inputs / "out")
    (inputs / "plugin-arm64").unlink()

    with pytest.raises(ImageError):
        build(inputs / "image.toml", inputs / "out", "2", PLATFORMS)

    assert before == files(inputs / "out")


def test_a_bill_of_materials_of_an_earlier_build_goes(inputs):
    """Beside a layout are the documents of its platforms alone."""
    for platforms in (PLATFORMS, PLATFORMS[:1]):
        build(inputs / "image.toml", inputs / "out", "1", platforms)

    assert ["hello.amd64.spdx.json"] == [path.name for path in (inputs / "out").glob("*.spdx.json")]


def test_a_folder_that_the_base_has_as_a_link_stays_one(inputs):
    """A recipe's file below /lib goes to /usr/lib, so that programs find their libraries."""
    recipe = inputs / "image.toml"
    recipe.write_text(RECIPE.replace('"/plugin"\nexecutable', '"/lib/plugin"\nexecutable'))
    build(recipe, inputs / "out", "1", PLATFORMS)
    root = inputs / "root"
    root.mkdir()
    unpack(inputs / "out/hello", PLATFORMS[0], root)

    assert (root / "usr/lib/plugin").is_file()
    assert not (root / "lib").exists()


def test_a_folder_that_exists_is_not_unpacked_to(inputs):
    """The command names the folder and ends with a sentence."""
    build(inputs / "image.toml", inputs / "out", "1", PLATFORMS)

    done = CliRunner().invoke(cli.main, ["unpack", str(inputs / "out/hello"), str(inputs)])

    assert (1, f"Error: {inputs}: there is one already; name a folder that is not") == (
        done.exit_code,
        done.output.strip(),
    )


def test_the_command_says_what_was_built(inputs):
    """A line names the digest, and one each platform's size."""
    words = [
        "build",
        str(inputs / "image.toml"),
        "--version=1",
        f"--output={inputs}/out",
        "--platform=linux/amd64",
    ]
    done = CliRunner().invoke(cli.main, words)

    assert 0 == done.exit_code, done.output
    name, size = done.output.splitlines()
    assert name.startswith("berth/hello sha256:")
    assert size.startswith("  linux/amd64: ")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--platform=linux/s390x"], "--platform linux/s390x: use one of linux/amd64, linux/arm64"),
        (["--inputs=/"], "/plugin-amd64: No such file or directory"),
    ],
)
def test_the_command_ends_with_a_sentence(inputs, words, complaint):
    """What is wrong is an error of one line."""
    command = ["build", str(inputs / "image.toml"), "--version=1", f"--output={inputs}/out", *words]
    done = CliRunner().invoke(cli.main, command)

    assert 1 == done.exit_code
    assert complaint in done.output
