"""Floor 2: a DeschedulerPolicy, read as strictly as a configuration.

`berth deschedule` plans by it, the operator checks the one of a Scheduler.
"""
