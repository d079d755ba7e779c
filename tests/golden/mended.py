"""Vectors on which Berth mends a fault of kube-scheduler 1.36.2, and so differs: docs/upstream-faults.md.

The number is that of the report in kubernetes/kubernetes.
"""

MENDED = {
    "hints-g1-0206": 139161,
    "hints-g1-0329": 141953,
    "mixed-g1-0141": 141526,
    "mixed-g1-0164": 141526,
}
