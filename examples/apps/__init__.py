"""The applications that Halide is known by, as algorithms with plans. `python -m examples.apps NAME` runs one on a photograph."""
