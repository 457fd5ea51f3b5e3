"""The project's own benchmark suite: `python -m benchmarks`."""
