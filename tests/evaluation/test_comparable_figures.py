"""Figures of one text in several tokenisations: the same words, characters and bytes below all bits."""

import math

import msgspec
import numpy as np
import pytest
import torch

from elman.cli import show
from elman.config.text import SubwordOptions, TextEvaluation, TextOptions
from elman.data.text.corpus import open_corpus
from elman.data.windows import start_symbol
from elman.errors import UserError
from elman.evaluation.perplexity import ONE_STREAM, evaluate_split, score_of, text_result
from elman.network.build import tiny_model

LINES = ("the cat sat", "a naïve 猫 ran", "吾輩 は 猫 で ある")
TOKENISATIONS = ("words", "raw", "characters", "bytes", "subwords")


def uniform_figures(folder, tokenisation, rules=ONE_STREAM):
    """The figures of the test split of a model to which all its symbols are alike, and the bits that it needs."""
    exact = tokenisation in ("characters", "bytes", "subwords")
    options = TextOptions(
        tokenisation=tokenisation,
        eos="exact" if exact else "line",
        vocabulary_from="all",
        subwords=SubwordOptions(size=300, coverage=1.0),
    )
    corpus = open_corpus(folder, options)
    model, split = tiny_model(num_words=len(corpus.vocabulary)).eval(), corpus.split("test")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = evaluate_split(model, split, start_symbol(corpus.vocabulary), rules)
    return found, found.tokens * math.log2(len(corpus.vocabulary))


def test_bits_of_a_uniform_model_are_over_the_same_units(tmp_path):
    for name, times in (("train", 30), ("valid", 5), ("test", 7)):
        (tmp_path / f"{name}.txt").write_text("\n".join(LINES * times) + "\n")
    text = (tmp_path / "test.txt").read_text()
    units = {"character": len(text), "byte": len(text.encode()), "word": len(text.split()) + text.count("\n")}
    for tokenisation in TOKENISATIONS:
        found, bits = uniform_figures(tmp_path, tokenisation)
        assert {unit: getattr(found, f"{unit}s") for unit in units} == units, tokenisation
        for unit, count in units.items():
            assert getattr(found, f"bits_per_{unit}") == pytest.approx(bits / count, rel=1e-5)
        assert found.word_perplexity == pytest.approx(2 ** (bits / units["word"]), rel=1e-3)
        if tokenisation in ("characters", "bytes"):
            unit = tokenisation.removesuffix("s")
            assert getattr(found, f"bits_per_{unit}") == pytest.approx(found.bits_per_token)
        if tokenisation == "words":
            assert found.word_perplexity == pytest.approx(found.perplexity)


@pytest.mark.parametrize(
    ("beginning", "tokenisation", "left"),
    [
        ("naïve cats", "words", {"character": 5, "byte": 6, "word": 1}),
        ("naïve-ish cats", "raw", {"character": 9, "byte": 10, "word": 1}),
        ("\nthe cat", "words", {"character": 1, "byte": 1, "word": 1}),
        ("猫 ran", "characters", {"character": 1, "byte": 3, "word": 1}),
        ("the cat", "characters", {"character": 1, "byte": 1, "word": 0}),
        ("猫 ran", "bytes", {"character": 1, "byte": 1, "word": 0}),
        ("a cat", "bytes", {"character": 1, "byte": 1, "word": 1}),
        ("the cat", "subwords", None),
    ],
)
def test_without_the_first_token_its_units_do_not_count(tmp_path, beginning, tokenisation, left):
    for name, times in (("train", 30), ("valid", 5), ("test", 7)):
        (tmp_path / f"{name}.txt").write_text("\n".join([beginning, *LINES * times]) + "\n")
    whole, _ = uniform_figures(tmp_path, tokenisation)
    found, bits = uniform_figures(tmp_path, tokenisation, TextEvaluation(streams=1, skip_first=True))
    assert found.tokens == whole.tokens - 1
    counted = {unit: getattr(whole, f"{unit}s") - getattr(found, f"{unit}s") for unit in ("character", "byte", "word")}
    assert counted == left or (left is None and counted["character"] == counted["byte"] > 0)
    for unit in counted:
        assert getattr(found, f"bits_per_{unit}") == pytest.approx(bits / getattr(found, f"{unit}s"), rel=1e-5)
    if tokenisation in ("words", "raw"):
        assert found.word_perplexity == pytest.approx(found.perplexity)
        assert found.bits_per_word == pytest.approx(found.bits_per_token)


def test_an_unknown_first_token_that_is_skipped_does_not_count(tmp_path):
    for name, text in (("train", "<unk> cat sat\n"), ("valid", "cat sat\n"), ("test", "dog sat\ncat dog\n")):
        (tmp_path / f"{name}.txt").write_text(text)
    split = open_corpus(tmp_path, TextOptions()).split("test")
    assert (split.unknown, split.counted(skip_first=True).unknown) == (2, 1)
    assert split.counted(skip_first=False) is split


def test_tokens_without_a_probability_are_not_left_out_in_silence(tmp_path):
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text("the cat sat\n" * 3)
    split = open_corpus(tmp_path, TextOptions()).split("test")
    log_probs = np.log(np.full(12, 0.5, np.float32))
    assert text_result(score_of(log_probs), split).perplexity == pytest.approx(2)
    log_probs[[2, 7]] = np.nan
    with pytest.raises(UserError, match="2 of 12 tokens have no probability but NaN"):
        text_result(score_of(log_probs), split)


def test_a_text_without_spaces_has_no_figures_a_word(tmp_path, capsys):
    for name, times in (("train", 30), ("valid", 5), ("test", 7)):
        (tmp_path / f"{name}.txt").write_text(
            "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。\n" * times
        )
    spelt = ("characters", "bytes", "subwords")
    rows = [(name, uniform_figures(tmp_path, name)[0]) for name in (*spelt, "words")]
    assert not any({"word_perplexity", "bits_per_word"} & row.as_dict().keys() for _, row in rows)
    assert len({round(row.bits_per_character / row.bits_per_byte, 5) for _, row in rows}) == 1
    show.print_figures("figures", "run", rows[:3])
    printed = capsys.readouterr().out
    assert "bits/byte" in printed
    assert "ppl/word" not in printed
    more = rows[0][1].measures | {"word_perplexity": 12.5}
    spaced = ("spaced", msgspec.structs.replace(rows[0][1], measures=more))
    show.print_figures("figures", "run", [*rows[:3], spaced])
    assert "ppl/word" in capsys.readouterr().out
