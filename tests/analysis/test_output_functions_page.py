"""The page about output functions takes any activation."""

from elman.analysis import output_functions
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
