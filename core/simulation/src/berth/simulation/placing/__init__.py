"""Places pods without a queue: how many more fit, and which new nodes would make them fit."""
