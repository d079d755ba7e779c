"""Resources that a CustomResourceDefinition defines: schema, rules, printer columns."""
