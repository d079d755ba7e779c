"""queues: who gets what where there is not enough, by a tree of queues with quotas and fair shares."""
