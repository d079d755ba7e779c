"""Objects, answers and connections made to stop a scheduler, and what they can do at most.

Every test here asserts work or memory, never time: function calls counted, bytes kept, other pods bound.
SECURITY.md has the threat model.
"""
