"""Floor 4: the binding cycle, from an assumed pod to a bound one."""
