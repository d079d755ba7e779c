"""queues: who gets what where there is not enough, by a tree of queues with quotas and fair shares.

objects      queue_objects, elastic_quotas, koordinator: what users wrote, as QueueSpecs; groups, budgets
arithmetic   tree, filling, fair_shares, dominant, decay: no I/O, no pods
books        registry (queues and their use), ledger (pods on nodes), waiting (pods that wait), promises
decisions    order (whose turn), admission (whether there is quota), entitlement and plan (who has to
leave) outside      plugin (the protocol), status (what kubectl shows)
"""

from berth_queues.plugin import Queues

__all__ = ["Queues"]
