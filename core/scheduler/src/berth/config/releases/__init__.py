"""Which kube-scheduler is followed, release by release: its gates, API versions and decisions.

    release.py        the releases, and which of them a process follows
    gate_history.py   each feature gate's stage, default and lock since it exists
    rules.py          what a release decides otherwise than the one before it, as named values

A release's rules are handed to the parts that they concern when these are made; nothing compares versions.
docs/releases.md says how a new release of Kubernetes is taken in.
"""
