"""Which running pods stand where today's rules would not place them, and where they would stand better.

    policy (berth.config.descheduling) -----+--> strategies --> candidates --> evictor, budgets
    files, live cluster --> cluster, facts -+                                         |
                                                   eviction <-- Plan <-- judged by the engine that schedules

Only eviction writes. Called by: `berth deschedule`.
"""
