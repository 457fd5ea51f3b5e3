"""Every operator, and its gradient, beside PyTorch's on PyTorch's own sample inputs: ``python -m tests.opinfo``."""
