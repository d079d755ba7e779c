"""Generated from proto/grpcplugin by `make proto`; never edited."""
