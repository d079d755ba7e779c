"""Plugins may run other programs, such as one that reads the node's devices, while they answer calls.

gRPC prepares each fork for a child that goes on using gRPC, and during calls some of uvloop's children
end with SIGSEGV of it, before their program runs. A child that only runs a program needs none of that. gRPC
reads the variable where it is imported, so this is imported before it; a value that the author set stays.

Source: github.com/grpc/grpc doc/fork_support.md.
"""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
