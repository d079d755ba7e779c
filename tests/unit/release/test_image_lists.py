"""The images that manifests name are the images that a release builds and its pages tell users to copy."""

import yaml

from tests.go_toolchain import ROOT
from tests.release.images import RECIPES

NAMED = {
    each["name"].removeprefix("berth/")
    for each in yaml.safe_load((ROOT / "kustomize/images/kustomization.yaml").read_text())["images"]
}
"""The one list: `make images`, image files and pages are held to it."""
TEMPLATES = {"hello"}
"""Built by their users, of the SDKs' templates."""
CORE = NAMED & {path.stem for path in ROOT.glob("core/images/*.Dockerfile")}
NEED_OTHER_TOOLS = {"data-locality", "load-aware", "numa-aware"}
"""In Rust, Java or TypeScript: image files alone."""


def test_every_image_is_built():
    """Each has an image file, and a recipe unless it needs a toolchain of another language."""
    files = {path.stem for path in ROOT.glob("core/images/*.Dockerfile")}
    files |= {path.parent.name for path in ROOT.glob("out-of-tree-plugins/*/Dockerfile")}

    assert NAMED - TEMPLATES == files
    assert NAMED - TEMPLATES - NEED_OTHER_TOOLS == RECIPES.keys() - {"sandbox"}


def test_core_images():
    """What a Scheduler can name without a plugin."""
    assert {"operator", "scheduler", "descheduler"} == CORE


def test_pages_name_every_image():
    """Users copy what they are told to: each core image is in the page's commands and lists."""
    page = (ROOT / "docs/install.md").read_text()

    assert "for image in operator scheduler descheduler; do" in page
    assert all(f"`berth/{name}`" in page for name in CORE)
