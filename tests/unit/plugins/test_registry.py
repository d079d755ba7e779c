from berth.config.catalogue import IN_TREE as CATALOGUE
from berth.config.catalogue import ExtensionPoint
from berth.framework import interface
from berth.plugins.registry import IN_TREE

# Placement belongs to pod groups, which are scheduled by a cycle of their own.
POINTS = {
    point: getattr(interface, point.interface)
    for point in ExtensionPoint
    if hasattr(interface, point.interface)
}


def test_names():
    """A plugin is registered under its class's name, and configuration knows it."""
    assert {name: name for name in IN_TREE} == {name: kind.__name__ for name, kind in IN_TREE.items()}
    assert CATALOGUE.keys() >= IN_TREE.keys()


def test_points():
    """Each plugin implements the extension points that configuration says it does."""
    implemented = {
        name: {point for point, base in POINTS.items() if issubclass(kind, base)}
        for name, kind in IN_TREE.items()
    }

    assert {name: CATALOGUE[name] & POINTS.keys() for name in IN_TREE} == implemented
