"""Keep-alive connections to one API server, and one request on its way over one of them."""
