"""Simulation: the scheduler's own core on a cluster in memory, in virtual time.

    files or a live cluster --> snapshot_file, inputs --> ClusterInput --> engine --> Outcome
                                                                            |
                                                       fill, fitting, compare, sweep

Nothing here writes to a cluster. Called by: `berth snapshot` and `berth simulate`, simulation_service.
"""
