"""From parameters and rows to a fitted model: what to train, how, the threshold, probabilities, and the model file.

The classifier asks these modules; they use solvers, risks, measures and operators, and know nothing of the command line.
"""
