"""What a complete configuration has to obey: every violation is collected, in upstream's order."""
