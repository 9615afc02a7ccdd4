"""A hierarchical clustering drawn as a tree: leaves below each other on the left, distances to the right."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from scipy.cluster import hierarchy

from elman.drawing.style import INK, SERIES, canvas, label, svg

LEAF_INCHES = 0.16
"""Height of a leaf's line of text."""


def draw(merges: npt.NDArray[np.float64], leaves: Sequence[str], name: str, title: str, distance: str) -> Markup:
    """The tree of SciPy's linkage matrix [n - 1, 4] over n leaves as an `<svg>` element; `distance` labels its axis."""
    tree = hierarchy.dendrogram(merges, no_plot=True)
    figure, axes = canvas("wide")
    figure.set_size_inches(4.8, 0.6 + LEAF_INCHES * len(leaves))
    for heights, places in zip(tree["dcoord"], tree["icoord"], strict=True):
        axes.plot(heights, places, color=SERIES[0], linewidth=0.9, solid_joinstyle="miter")
    # SciPy puts leaf i at 10 i + 5.
    axes.set_yticks([10 * place + 5 for place in range(len(leaves))], [leaves[leaf] for leaf in tree["leaves"]])
    axes.tick_params(axis="y", colors=INK, labelsize=8)
    axes.grid(visible=False)
    axes.set_ylim(10 * len(leaves), 0)
    axes.set_xlim(left=0)
    label(axes, distance, "")
    return svg(figure, name, title, ", ".join(leaves[leaf] for leaf in tree["leaves"]))
