"""Vectors on which Berth mends a fault of kube-scheduler 1.36.2, and so differs: docs/upstream-faults.md.

The number is that of the report in kubernetes/kubernetes, where there is one.
"""

OF_VOLUMES = "nodes and drivers that come, capacity that is tracked no more: pods with claims are tried"

MENDED = {
    "hints-g1-0206": "kubernetes/kubernetes#139161",
    "hints-g1-0329": "kubernetes/kubernetes#141953",
    "hints-g1-0015": OF_VOLUMES,
    "hints-g1-0149": OF_VOLUMES,
    "hints-g1-0306": OF_VOLUMES,
    "mixed-g1-0141": "kubernetes/kubernetes#141526",
    "mixed-g1-0164": "kubernetes/kubernetes#141526",
}
