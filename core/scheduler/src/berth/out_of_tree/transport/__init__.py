"""The transports to a plugin: gRPC calls, one gRPC stream, or ttrpc frames on a unix socket."""
