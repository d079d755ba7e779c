"""The live page of a scheduler: nodes, queue, decisions, plugins and attempts of the moment, in a browser.

    records of attempts ──► RecentAttempts ─┐
    queue, each second ──► History ─────────┼─ Collector (scheduling loop) ──► LivePages (control thread)
    snapshot ──► node_map ──────────────────┘

Source: docs/live-page.md.
"""
