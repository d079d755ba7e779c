"""What queues have and use while virtual time passes, as plugins that divide a cluster show it."""
