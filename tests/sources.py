"""The source trees of the package `berth`: core/NAME/src, one for each distribution with a part of it."""

from tests.go_toolchain import ROOT

TREES = sorted(path.parent for path in ROOT.glob("core/*/src/berth"))


def modules():
    """The file of each module, by its path below the folder `berth`."""
    return {
        str(path.relative_to(tree / "berth")): path for tree in TREES for path in tree.glob("berth/**/*.py")
    }
