"""How fast it is: `python -m tests.benchmarks [NAME ...]` prints distributions and judges nothing.

Each module measures one thing and gives tables; workloads.yaml says on what.
"""
