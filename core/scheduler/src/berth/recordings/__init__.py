"""Recordings: what is written down, how files are written, and what is said of one that can't be read.

    core      what goes into a scheduler's core and comes out of it        --record-to
    calls     what passes between the host and a sidecar                   berth plugin record
    cluster   what happens in a cluster, whatever schedules there          berth record

Recordings of cores and clusters are lines of JSON, compressed (line_files.py); those of calls are messages of
the protocol, because plugins' authors read them. Their replays are where what they replay with is:
berth.simulation, berth.observer and berth.replay.
"""
