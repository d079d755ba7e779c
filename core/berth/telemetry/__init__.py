"""Floor 5: traces, metrics and logs, all made from cycle records."""
