"""InterPodAffinity: put pods near to some pods and away from others, within a topology.

`terms.py` says which pods a term means, `filtering.py` counts for the required terms of both sides,
`scoring.py` for the preferred ones, `hints.py` says what may help.

Source: pkg/scheduler/framework/plugins/interpodaffinity (Kubernetes v1.36).
"""

from berth.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
