"""Pictures of a fit; matplotlib is imported when one is drawn."""

from scoreline.report.plots import plot_convergence, plot_score_distributions

__all__ = ["plot_convergence", "plot_score_distributions"]
