"""What solvers share: the loop, line searches, lower bounds, Hessians, checkpoints, early stopping, row methods."""
