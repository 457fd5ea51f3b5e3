"""The command line: parses, calls the verbs of the Python API, prints. Nothing is computed here."""
