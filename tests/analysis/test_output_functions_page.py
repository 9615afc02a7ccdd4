"""The page about output functions takes any activation."""

import numpy as np
import pytest
import torch

from elman.analysis import output_functions
from elman.drawing.style import svg
from elman.network.output.activation import ACTIVATIONS, Activation


def test_an_activation_that_can_be_zero_is_drawn(monkeypatch, tmp_path):
    square = Activation(lambda z: z.square().log(), lambda z: z.square().log(), lambda z: 2 / z, monotone=False)
    monkeypatch.setitem(ACTIVATIONS, "square", square)
    names = ["softmax", "square"]
    page = output_functions.write_outputs_page(
        tmp_path / "o.html", names, output_functions.rank_table(names), output_functions.limit_table(names)
    )
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 5
    assert "nan" not in text
    assert "From one line of scores, square reaches rank M for some b." in text


def test_the_verdict_names_every_output_function():
    ranks = [
        ("a", 0.0, list(output_functions.SIZES)),
        ("b", 0.0, list(output_functions.SIZES)),
        ("c", 0.0, [2] * len(output_functions.SIZES)),
    ]
    assert (
        output_functions.verdict(ranks)
        == "From one line of scores, a and b reach rank M for some b. C never exceeds 2."
    )


def test_curves_lie_in_the_triangle_and_within_the_axis(monkeypatch, tmp_path):
    drawn = {}

    def keep(figure, name, *about):
        drawn[name] = figure.axes[0]
        return svg(figure, name, *about)

    monkeypatch.setattr(output_functions, "svg", keep)
    output_functions.write_outputs_page(tmp_path / "o.html", ["softmax", "sigsoftmax"], [], [])
    corners = output_functions.on_simplex(torch.eye(3, dtype=torch.float64).log()).numpy()
    simplex = drawn["simplex-sigsoftmax"]
    np.testing.assert_allclose(simplex.patches[0].get_xy()[:3], corners)
    edges, *curves = simplex.lines
    np.testing.assert_allclose(edges.get_xydata(), corners[[0, 1, 2, 0]])
    assert len(curves) == len(output_functions.SHIFTS)
    for name in ("softmax", "sigsoftmax"):
        axes, heights = drawn[f"log-{name}"], []
        for line in axes.lines[1:]:
            heights.append(abs(line.get_ydata()).max())
        limit = 1.1 * max(1.0, *heights)
        assert axes.get_ylim() == pytest.approx((-limit, limit))
    assert max(heights) > 1.0, "the scale follows the curves"
