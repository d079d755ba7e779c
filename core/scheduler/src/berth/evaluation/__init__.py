"""Runs PreFilter to Score for one pod, and caches the results by node for equal pods."""
