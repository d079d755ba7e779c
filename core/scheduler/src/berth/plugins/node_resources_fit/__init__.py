"""NodeResourcesFit: nodes that have what the pod requests, ranked by how full they would be.

`filtering.py` holds the verdicts, `scoring.py` the three strategies, `hints.py` what wakes a pod up.

Source: pkg/scheduler/framework/plugins/noderesources (Kubernetes v1.36).
"""

from berth.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
