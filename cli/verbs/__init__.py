"""One file a verb: what it asks of the compiler, and how its answer reads."""
