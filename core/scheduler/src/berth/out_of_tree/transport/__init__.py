"""How a call travels to a plugin: gRPC, one gRPC stream, or ttrpc's frames on a unix socket."""
