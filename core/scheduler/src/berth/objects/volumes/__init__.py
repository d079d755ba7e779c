"""Volumes, claims and classes, and the CSI drivers behind them."""
