"""Arrays of PyTorch, CuPy and other Array API libraries: vectors, kernels, operators and the score space of a device.

Other packages import this one only when they receive such an array or the name of a device.
"""
