"""Floor 3: the in-tree plugins, one module each, named as upstream names them."""
