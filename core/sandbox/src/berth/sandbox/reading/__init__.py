"""What clients read: lists, watches, tables, discovery, OpenAPI."""
