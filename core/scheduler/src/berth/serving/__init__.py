"""The secure port of a process: connections, who may ask what, health, metrics, profiles.

    socket ─► connections: bounded, TLS ─► gate: authenticated, authorized, bounded ─► endpoints

Called by: scheduler/ and operator/, which add pages of their own.
"""
