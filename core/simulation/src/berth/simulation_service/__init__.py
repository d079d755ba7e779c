"""Would it fit, as a service for autoscalers: berth.simulation.v1 and the cluster-autoscaler's expander.

    gRPC --> server --> service, expander --> queries --> a thread --> berth.simulation.placing.fitting
                               |                             ^
                          forks, live_cluster          turns between clients

Nothing here writes to a cluster. Called by: `berth simulate serve`.
"""
