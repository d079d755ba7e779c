"""Generated from proto/berth/plugin/v1 by `make proto`; never edited."""
