"""Arrays of PyTorch, CuPy and other Array API libraries: vectors, kernels, operators and the score space of a device.

Other rooms import this one only when such an array comes in or a device is asked for.
"""
