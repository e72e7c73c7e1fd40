"""What all displays share: axes of their own or given ones, and a legend."""

from abc import ABC, abstractmethod
from typing import Any

from scoreline.report.axes import HEIGHT, axes_for, legend


class Display(ABC):
    """A picture that keeps the arrays it shows; a subclass writes `_draw` and `describe`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn last.
    """

    ax_: Any
    figure_: Any

    @property
    def height(self) -> float:
        """Height of a figure of its own, in inches."""
        return HEIGHT

    @abstractmethod
    def describe(self) -> str:
        """Return what the picture shows, in numbers."""

    @abstractmethod
    def _draw(self, ax: Any) -> list[tuple[Any, str]]:
        """Draw, and return the entries of the legend: artists and words."""

    def plot(self, ax: Any = None, *, legend_at: str | None = None) -> Any:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        legend_at : {"below", "best", "none"}, optional
            Place of the legend: below a figure of its own, else the best place in the axes.

        Returns
        -------
        Display
            The display itself, with ax_ and figure_.
        """
        self.ax_ = axes_for(ax, type(self).__name__, self.height)
        self.figure_ = self.ax_.figure
        legend(self.ax_, self._draw(self.ax_), legend_at, ax is not None)
        return self
