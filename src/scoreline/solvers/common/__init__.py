"""The common parts of solvers: the loop, line searches, lower bounds, Hessians, checkpoints, early stopping, row methods."""
