"""Floor 6: the operator: Scheduler and SchedulerPlugin resources become running schedulers.

    watch ─▶ queue ─▶ reconciler ─▶ plan (validate, render) ─▶ server-side apply, prune ─▶ status, events

`definitions` is the one source of the CustomResourceDefinitions; `plan` and `rendering` make objects of
resources and do no I/O; `reconciler` does, through Berth's own client.
"""
