"""elman recipes: whole file names, and published figures with their measures."""

import json
import math

import pytest

from elman.config.toml import shipped
from support.commands import is_understood, output, refusal


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


def test_recipes_are_found_by_their_size_and_minutes(capsys):
    every = json.loads(output(capsys, "recipes", "grammar/", "--json", "--minutes", "100000"))
    rows = {row["path"]: (row["parameters"], row["minutes"]) for row in every}
    srn = rows["recipes/grammar/srn.toml"]
    assert len(set(rows.values())) > 1
    for name, at in (("--size", 0), ("--minutes", 1)):
        found = json.loads(output(capsys, "recipes", "grammar/", "--json", name, str(srn[at])))
        assert {row["path"] for row in found} == {path for path, own in rows.items() if own[at] <= srn[at]}
    assert srn[0] == 50 * 16 + 70 * (16 + 70) + 2 * 70 + 70 * 50 + 50
    assert "no recipe has grammar/ in its path" in refusal(capsys, "recipes", "grammar/", "--size", "10")
    assert "text/prose" not in output(capsys, "recipes", "text", "--minutes", "100000")


def test_trials_of_the_laboratory_have_a_folder_by_default():
    assert is_understood(["lab", "lesson"])
    assert is_understood(["lab", "compare"])
