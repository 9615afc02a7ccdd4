"""elman recipes: whole file names, and published figures with their measures."""

import json
import math

import pytest

from elman.config.toml import shipped
from support.commands import is_understood, output


def test_file_names_are_whole(capsys):
    printed = output(capsys, "recipes")
    for path, _ in shipped():
        assert f" {path} " in printed


def test_published_figures_have_their_measure(capsys):
    rows = {row["path"]: row for row in json.loads(output(capsys, "recipes", "--json"))}
    characters, words = rows["recipes/ptb-characters/awd-lstm.toml"], rows["recipes/ptb/awd-lstm.toml"]
    assert characters["measure"] == "bits per character"
    assert characters["figure"] == pytest.approx(math.log2(characters["expected"]))
    assert (words["figure"], words["measure"]) == (words["expected"], "perplexity")
    assert rows["recipes/enwik8/awd-lstm.toml"]["measure"] == "bits per byte"
    assert rows["recipes/grammar/gru.toml"]["measure"] == ""


def test_trials_of_the_laboratory_have_a_folder_by_default():
    assert is_understood(["lab", "lesson"])
    assert is_understood(["lab", "compare"])
