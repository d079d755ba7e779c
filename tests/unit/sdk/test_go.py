"""The Go SDK and the Go plugins: their own tests and documentation."""

import re
import shutil

import pytest

from tests.go_toolchain import GO_SDK, MODULES, ROOT, run_go, unformatted


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module(module):
    """A module's own tests pass, in any order; `make lint` vets them."""
    done = run_go("test", "-vet=off", "-shuffle=on", "-timeout=120s", "./...", folder=module, capture=True)

    assert 0 == done.returncode, done.stdout


def test_format():
    """The Go files are as gofmt writes them."""
    assert not unformatted()


def test_readme(tmp_path):
    """The plugin of the README is complete, and its test passes."""
    readme = (GO_SDK / "README.md").read_text(encoding="utf-8")
    plugin, test = re.findall(r"```go\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "main.go").write_text(plugin)
    (tmp_path / "main_test.go").write_text(test)
    for name in ("go.mod", "go.sum"):
        shutil.copy(GO_SDK / "template" / name, tmp_path)
    replaced = run_go("mod", "edit", f"-replace=berth.dev/plugin-sdk/go={GO_SDK}", folder=tmp_path)

    vetted = run_go("vet", "./...", folder=tmp_path, capture=True)
    done = run_go("test", "-vet=off", "./...", folder=tmp_path, capture=True)

    assert (0, 0, 0) == (replaced.returncode, vetted.returncode, done.returncode), vetted.stdout + done.stdout
