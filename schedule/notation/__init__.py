"""How a plan is written down: the YAML tree with places, typed fields, records, holes. Knows no directive and no section."""
