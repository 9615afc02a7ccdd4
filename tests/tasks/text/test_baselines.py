"""Baselines of texts count the tokens that the network's evaluation counts."""

import msgspec
import pytest

from elman import config
from elman.tasks.open import open_task
from support import text_runs


@pytest.mark.parametrize("skip", [False, True])
def test_baselines_count_what_the_recipe_counts(tmp_path, skip):
    corpus = text_runs.write_corpus(tmp_path / "corpus")
    raw = msgspec.to_builtins(text_runs.recipe(), str_keys=True)
    raw["data"] = {"kind": "text", "tokenisation": "words", "evaluation": {"skip_first": skip}}
    rows = open_task(config.parse_recipe(raw, "toy"), str(corpus)).baselines(3, ["test"])
    assert [row.name for row in rows] == ["unigram", "Kneser-Ney 3-gram"]
    assert {row.tokens for row in rows} == {20 * 10 - skip}
    assert {row.words for row in rows} == {20 * 10 - skip}


@pytest.mark.parametrize(("tokenisation", "order"), [("words", 5), ("characters", 8), ("bytes", 8)])
def test_n_grams_are_longer_where_symbols_are_shorter(tmp_path, tokenisation, order):
    corpus = text_runs.write_corpus(tmp_path / "corpus")
    raw = msgspec.to_builtins(text_runs.recipe(), str_keys=True)
    raw["data"] = {"kind": "text", "tokenisation": tokenisation}
    rows = open_task(config.parse_recipe(raw, "toy"), str(corpus)).baselines(None, ["valid"])
    assert [row.name for row in rows] == ["unigram", f"Kneser-Ney {order}-gram"]
