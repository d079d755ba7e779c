"""The queues' shares and use over virtual time, as plugins with queues show them."""
