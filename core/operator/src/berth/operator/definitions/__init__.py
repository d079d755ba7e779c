"""The CustomResourceDefinitions of berth.dev, written once, here.

`make manifests` writes them out; a test compares.
"""

from berth.operator.definitions.plugin_definition import plugin_definition
from berth.operator.definitions.scheduler_definition import scheduler_definition

__all__ = ["plugin_definition", "scheduler_definition"]
