"""Checks Berth's decisions against vectors whose results kube-scheduler itself gave.

`python -m tests.golden [--dir DIR] [--family NAME ...] [--jobs N] [--show N]` reads every `FAMILY.jsonl.gz`
or `FAMILY.jsonl` of scheduling vectors in DIR, prints a line a family and exits 1 on any difference. A vector
passes when everything that it expects was compared and is equal.

    vectors -> cluster (cache, snapshot, profiles) -> answers by kind -> differences -> report
"""
