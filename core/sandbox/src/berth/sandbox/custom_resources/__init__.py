"""Resources that a CustomResourceDefinition defines: its REST storage and printer columns."""
