"""Pods, as far as scheduling reads them: what they ask for, and what they request in total."""
