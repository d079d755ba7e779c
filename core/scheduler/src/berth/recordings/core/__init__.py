"""The tape of a scheduler: what goes into its core, in order, and what the core does about it.

    watches, timers, answers --span--> core --calls--> API server
                               |                |
                               +---- tape ------+--> files that rotate

A core that is recorded gets its clock, its concurrency and its writers from here, so that everything that it
cannot work out for itself is on the tape. `berth simulate replay` gives the same to another core.

Why, and what a recording costs: docs/decisions/0036-recording-a-day.md.
"""
