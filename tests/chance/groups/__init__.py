"""Pod groups and trees of them by chance, against a model written from the specification alone.

`model.py` says what is to come of an attempt, and imports nothing of Berth; `drawing.py` draws clusters and
what arrives on them; `playing.py` plays that to the scheduler's core and compares.
"""
