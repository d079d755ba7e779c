"""What a release is made of, and how it is made: `python -m tests.release dist|check|version`."""
