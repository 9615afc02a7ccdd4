"""Minimal pairs from templates and from the tables of generated sentences; pairs cut at their first difference."""

import json

import pytest

from elman.data.minimal_pairs import Pair, read_pairs, until_difference
from elman.errors import UserError
from support.commands import output

TEMPLATE = """
phenomenon = "across a phrase"
text = "The {noun} near the {other} {verb} {how}."
[slots]
how = ["often", "now"]
[slots.noun]
singular = ["author", "key"]
plural = ["authors", "keys"]
[slots.other]
singular = ["pilot"]
plural = ["pilots"]
[slots.verb]
agrees = "noun"
singular = ["laughs"]
plural = ["laugh"]
"""


def _written(folder, text, name="pairs.toml"):
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_template_crosses_its_conditions_with_its_words(tmp_path):
    pairs = read_pairs([_written(tmp_path, TEMPLATE)])
    assert len(pairs) == 4 * 2 * 2
    one = next(pair for pair in pairs if pair.good == "The keys near the pilot laugh often.")
    assert one.bad == "The keys near the pilot laughs often."
    assert dict(one.others) == {"noun": "plural", "other": "singular", "condition": "plural singular"}
    assert {pair.phenomenon for pair in pairs} == {"across a phrase"}
    assert len({pair.good for pair in pairs}) == len({pair.item for pair in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('agrees = "noun"', ""), "agrees"),
        (('plural = ["laugh"]', 'plural = ["laugh", "swim"]'), "length"),
        (('plural = ["laugh"]', 'dual = ["laugh"]'), "give both the same"),
        (("text = ", "texts = "), "not a template"),
        (('how = ["often", "now"]', 'why = ["often"]'), "slots.how"),
        (('"often", "now"', '"often", now'), "pairs.toml"),
    ],
)
def test_what_is_wrong_with_a_template_is_said(tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        read_pairs([_written(tmp_path, TEMPLATE.replace(*change))])


def test_verbs_of_generated_sentences_are_pairs_with_their_beginnings(tmp_path):
    header = "sentence\tnoun\tverb\tright\twrong\tnumber\tdepth\tlevels\tattractors\n"
    (tmp_path / "valid.txt").write_text("dogs walk .\ncats who Mary sees chase dogs .\n")
    rows = "1\t0\t1\twalk\twalks\tpl\t0\t0\t0\n2\t0\t4\tchase\tchases\tpl\t0\t1\t1\n"
    pairs = read_pairs([_written(tmp_path, header + rows, "valid.agreement.tsv")])
    assert [(pair.good, pair.bad, pair.whole) for pair in pairs] == [
        ("dogs walk", "dogs walks", False),
        ("cats who Mary sees chase", "cats who Mary sees chases", False),
    ]
    assert dict(pairs[1].others) == {"number": "pl", "depth": "0", "levels": "1", "attractors": "1"}
    with pytest.raises(UserError, match="is not word 2"):
        read_pairs([_written(tmp_path, header + rows.replace("1\t0\t1", "1\t0\t2"), "valid.agreement.tsv")])
    (tmp_path / "valid.txt").unlink()
    with pytest.raises(UserError, match="is not word"):
        read_pairs([str(tmp_path / "valid.agreement.tsv")])


def test_a_pair_is_cut_after_its_first_difference():
    cut = until_difference(Pair("The keys are old .", "The keys is old .", "p"))
    assert (cut.good, cut.bad, cut.whole) == ("The keys are", "The keys is", False)
    longer = Pair("The keys", "The keys are", "p")
    assert until_difference(longer) == longer


def test_accuracies_by_condition_in_one_command(capsys, tmp_path):
    file = _written(tmp_path, TEMPLATE)
    facts = json.loads(
        output(capsys, "minimal-pairs", "shakespeare", "--pairs", file, "--by", "sentence", "word", "--json")
    )
    assert [one["by"] for one in facts] == ["sentence", "word"]
    for one in facts:
        rows = {(row["field"], row["phenomenon"]): row for row in one["columns"]}
        assert rows["condition", "plural plural"]["pairs"] == 4
        assert (
            rows["noun", "singular"]["low"] <= rows["noun", "singular"]["accuracy"] <= rows["noun", "singular"]["high"]
        )
        assert sum(row["pairs"] for (field, _), row in rows.items() if field == "condition") == 16


def test_both_ways_of_judging_stand_side_by_side_without_columns_that_say_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    file = tmp_path / "pairs.tsv"
    texts = ["good\tbad\nthe king is\tthe king are\n", "good\tbad\nthe xyzzy is\tthe king is\n"]
    for text, reported in zip(texts, (False, True), strict=True):
        file.write_text(text)
        printed = output(capsys, "minimal-pairs", "shakespeare", "--pairs", file, "--by", "sentence", "word")
        assert ("unknown" in " ".join(printed.split("unknown words in pairs")[0].split())) is reported
        assert "first difference, %" in printed
        assert "distinguished" not in printed


def test_recipes_are_found_by_words(capsys):
    every = json.loads(output(capsys, "recipes", "--json"))
    some = json.loads(output(capsys, "recipes", "ptb", "small", "--json"))
    assert 0 < len(some) < len(every)
    assert all("small" in f"{row['path']} {row['title']}".lower() for row in some)
    assert "recipes/ptb/small-gru.toml" in [row["path"] for row in some]


def test_items_with_unknown_words_are_left_out_in_all_conditions(capsys, tmp_path):
    table = "item\tgood\tbad\tcondition\n1\tthe king is\tthe king are\tnear\n1\tthe xyzzy is\tthe xyzzy are\tfar\n"
    table += "2\tthe lord is\tthe lord are\tnear\n2\tthe queen is\tthe queen are\tfar\n"
    for name in ("one.tsv", "two.tsv"):
        (tmp_path / name).write_text(table if name == "one.tsv" else table.replace("xyzzy", "duke"))
    files = [tmp_path / "one.tsv", tmp_path / "two.tsv"]
    whole = json.loads(output(capsys, "minimal-pairs", "shakespeare", "--pairs", *files, "--json"))
    rows = {row["phenomenon"]: row for row in whole["columns"]}
    assert (rows["far"]["with_unknown_words"], rows["far"]["unknown_words"]) == (1, ["xyzzy"])
    assert rows["near"]["with_unknown_words"] == 0
    command = ("minimal-pairs", "shakespeare", "--pairs", *files, "--json", "--unknown", "exclude-items")
    known = json.loads(output(capsys, *command))
    assert known["left_out"] == 2, "item 1 of the first file, and not that of the second"
    assert {row["phenomenon"]: row["pairs"] for row in known["columns"]} == {"near": 3, "far": 3}
