"""Clusters, pods and configurations by chance, for kube-scheduler and Berth to decide on side by side.

`python -m tests.chance` runs seeds of a subject; tests/e2e/test_by_chance.py runs a few of each. The subject
`groups` is compared with a model (`tests/chance/groups`): no program has groups as 1.37 and 1.38 do.
"""
