"""Functions of single elements in plain arithmetic, which vectorises: polynomials of stated accuracy, narrow types, whole numbers.

`lanes` is what they are written in: values that build the program of a function, for LLVM and for the C of GPUs.
"""
