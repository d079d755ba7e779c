"""Settings of the whole suite."""

import os

from hypothesis import settings

# As `berth` has it, before gRPC is imported: tests start programs while they make calls.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A deadline for an example would be a timed assertion: it fails on a busy machine for no fault of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
