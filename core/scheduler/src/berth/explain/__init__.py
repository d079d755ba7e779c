"""The truth about a pod: what state it is in and why, which nodes turn it down, and what would make it fit.

    Explainer -- pod_states (state) -- trying (the engine, on every node) -- proposals (changes, each tried)
                                                  |
                                        schema: what is answered, in any form

Nothing is held, written or requeued by any of it. What it reads comes to it through its constructors; the
scheduler's pages serve it.
"""
