"""What the watches tell, carried into cache, queue and stores.

    node, pod on a node  --> cache, then a move pass: rejected pods that it may help are retried
    pod without a node   --> queue, and the store that failed attempts read it back from
    anything else        --> its store, then a move pass if a plugin waits for it

Called by: the reflectors of the API client (each handler has their on_add, on_update, on_delete, on_synced),
the simulator and tests. From here a new pod goes to the scheduling queue.

Source: pkg/scheduler/eventhandlers.go (Kubernetes v1.36).
"""
