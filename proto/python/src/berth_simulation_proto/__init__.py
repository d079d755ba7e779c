"""Generated from proto/berth/simulation/v1 by `make proto`; never edited."""
