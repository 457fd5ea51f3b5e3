"""Algorithms on real input. Each file runs by itself: `python -m examples.photo`."""
