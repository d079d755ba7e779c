"""Settings of the whole suite."""

from hypothesis import settings

# A deadline for an example would be a timed assertion: it fails on a busy machine for no fault of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
