"""What the core is handed by the adapters: tasks, writes, figures."""
