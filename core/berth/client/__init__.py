"""Floor 5: the API client: transport, credentials, reflectors, writes, leases."""
