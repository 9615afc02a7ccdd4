"""Suites of SyntaxGym: formulas, what is wrong with a file, regions and predictions under models."""

import copy
import json
import math

import numpy as np
import pytest

from elman.config.text import TextOptions
from elman.data.suites import parse_formula, read_suite
from elman.errors import UserError
from support.commands import output, refusal

VALUES = {("a", 1): np.array([1.0, 5.0]), ("a", 2): np.array([2.0, 2.0]), ("b", 1): np.array([3.0, 3.0])}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("(1;%a%) < (1;%b%)", [True, False]),
        ("(*;%a%)=(1;%b%)", [True, False]),
        ("(1;%a%) + (2;%a%) - (1;%b%) < 0.5 & (2;%a%) > -1", [True, False]),
        ("(1;%b%) - ((1;%a%) + (2;%a%)) > -0.5", [True, False]),
        ("(1;%b%) - (1;%a%) + (2;%a%) > 1.5", [True, False]),
        ("(1;%a%) > 4 | (2;%a%) = 2 & (1;%b%) < 0", [False, False]),
        ("(1;%a%) > 4 | ((2;%a%) = 2 & (1;%b%) < 0)", [False, True]),
        ("[(1;%a%) = 1.0009] & [ ( 2 ; %a% ) > 1e0 ]", [True, False]),
        ("(1;%a%) = 1.002", [False, False]),
    ],
)
def test_formulas_by_hand(formula, expected):
    assert parse_formula(formula).value(VALUES).tolist() == expected


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("(1;%a%) + (2;%a%)", "compares nothing"),
        ("(1;%a%) < (2;%a%) < 3", "one side is something else"),
        ("(1;%a%) & (2;%a%)", "one side is something else"),
        ("((1;%a%) < 2", "is not closed"),
        ("(1;%a%) < 2)", "stands where an operator"),
        ("(1;%a%) <", "it ends where"),
        ("(0;%a%) < 2", "numbered from 1"),
        ("(one;%a%) < 2", "is no region"),
        ("__import__('os') < 2", "is no region"),
        ("", "it ends where"),
        ("< 2", "stands where a region"),
    ],
)
def test_what_is_no_formula_is_said(formula, message):
    with pytest.raises(UserError, match=message):
        parse_formula(formula)


def _suite():
    def sentence(name, texts):
        regions = [{"region_number": at, "content": text} for at, text in enumerate(texts, start=1)]
        return {"condition_name": name, "regions": regions}

    items = [
        {
            "item_number": number,
            "conditions": [
                sentence("match", ["The " + one, "", "of my heart", "is", "dead ."]),
                sentence("mismatch", ["The " + many, "", "of my heart", "is", "dead ."]),
            ],
        }
        for number, (one, many) in enumerate([("king", "kings"), ("lord", "lords"), ("xyzzy", "plughs")], start=1)
    ]
    formulas = ["(4;%match%) < (4;%mismatch%)", "(*;%match%) < (*;%mismatch%) | (2;%match%) = (2;%mismatch%)"]
    return {
        "meta": {"name": "number", "metric": "sum"},
        "region_meta": {"1": "subject", "2": "gap", "4": "verb"},
        "predictions": [{"type": "formula", "formula": formula} for formula in formulas],
        "items": items,
    }


def _written(folder, suite, name="suite.json"):
    (folder / name).write_text(json.dumps(suite))
    return str(folder / name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["items"][1]["conditions"][0]["regions"][2].pop("content"), "item 2, condition match, region 3"),
        (lambda s: s["items"][1]["conditions"][0]["regions"].pop(3), "item 2, condition match: no region 4, which"),
        (lambda s: s["items"][2]["conditions"].pop(1), "item 3, condition mismatch: not there, but prediction 1"),
        (lambda s: s["items"][0].pop("item_number"), "item 1 of the file: .*item_number"),
        (lambda s: s["items"][0].update(item_number=2), "item 2 is there twice"),
        (lambda s: s["items"][0]["conditions"][1].update(condition_name="match"), "condition match: it is there twice"),
        (lambda s: s["items"][0]["conditions"][1].update(regions=[]), "item 1, condition mismatch: all regions"),
        (lambda s: s["predictions"][1].update(formula="(4;%match%) <"), "prediction 2: .*it ends where"),
        (lambda s: s["predictions"][1].update(type="relation"), "prediction 2: its type"),
        (lambda s: s["meta"].update(metric="all"), "meta.metric"),
        (lambda s: s.update(predictions=[]), "no predictions"),
        (lambda s: s.update(items=[]), "no items"),
    ],
)
def test_what_is_wrong_with_a_suite_is_said_in_one_line(tmp_path, change, message):
    suite = _suite()
    change(suite)
    with pytest.raises(UserError, match=message) as found:
        read_suite(tmp_path / _written(tmp_path, suite))
    assert "\n" not in str(found.value)


def test_regions_and_predictions_are_sums_of_tokens(capsys, tmp_path):
    file, items = _written(tmp_path, _suite()), tmp_path / "items.tsv"
    facts = json.loads(output(capsys, "minimal-pairs", "shakespeare", "--pairs", file, "--json", "--items", items))
    suite = read_suite(tmp_path / "suite.json")
    (tmp_path / "lines.txt").write_text("".join(one.stimulus(1, TextOptions()).text + "\n" for one in suite.sentences))
    tokens = output(capsys, "score", "shakespeare", tmp_path / "lines.txt", "--by", "token", "--json")
    bits = [[], [], [], [], [], []]
    for row in map(json.loads, tokens.splitlines()):
        bits[row["sentence"] - 1].append(row["surprisal"])
    rows = [line.split("\t") for line in items.read_text().splitlines()]
    at = {name: place for place, name in enumerate(rows[0])}
    widths = [2, 0, 3, 1, 3]  # the end of the sentence belongs to the last region
    for number, one in enumerate(bits):
        assert len(one) == sum(widths)
        for region, width in enumerate(widths):
            row = rows[1 + 5 * number + region]
            assert float(row[at["surprisal"]]) == pytest.approx(sum(one[sum(widths[:region]) :][:width]), abs=1e-5)
    means = {(row["condition"], row["region"]): row["surprisal"] for row in facts["regions"]}
    assert means["match", 4] == pytest.approx(np.mean([one[5] for one in bits[::2]]), abs=1e-5)
    assert means["match", 2] == 0
    right = [one[5] < other[5] for one, other in zip(bits[::2], bits[1::2], strict=True)]
    first, second, both = facts["predictions"]
    assert first["accuracy"] == both["accuracy"] == pytest.approx(np.mean(right))
    assert (second["accuracy"], second["items"], second["without_unknown_words"]) == (1, 3, 2)
    assert first["low"] < first["accuracy"] < first["high"] or first["accuracy"] in (0, 1)
    assert [(one["condition"], one["strange"], one["words"]) for one in facts["unknown"]] == [
        ("match", 1, ["xyzzy"]),
        ("mismatch", 1, ["plughs"]),
    ]
    known = json.loads(
        output(capsys, "minimal-pairs", "shakespeare", "--pairs", file, "--json", "--unknown", "exclude-items")
    )
    assert (known["items"], known["left_out"]) == (2, 1)
    assert known["predictions"][0]["accuracy"] == pytest.approx(np.mean(right[:2]))


@pytest.mark.parametrize("metric", ["mean", "median", "range", "max", "min"])
def test_other_metrics(capsys, tmp_path, metric):
    suite = _suite()
    suite["meta"]["metric"] = metric
    facts = [
        json.loads(output(capsys, "minimal-pairs", "shakespeare", "--pairs", _written(tmp_path, one), "--json"))
        for one in (_suite(), suite)
    ]
    total, other = ({(row["condition"], row["region"]): row["surprisal"] for row in one["regions"]} for one in facts)
    assert other["match", 4] == (0 if metric == "range" else pytest.approx(total["match", 4]))
    if metric == "mean":
        assert other["match", 3] == pytest.approx(total["match", 3] / 3)


def test_two_models_are_compared_on_suites(capsys, tmp_path):
    (tmp_path / "unigram.arpa").write_text(
        "\\data\\\nngram 1=5\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-1\t</s>\n-2\tis\n-1\tking\n\n\\end\\\n"
    )
    file, model = _written(tmp_path, _suite()), str(tmp_path / "unigram.arpa")
    facts = json.loads(output(capsys, "compare", "shakespeare", model, "--pairs", file, "--json"))
    alone = [
        json.loads(output(capsys, "minimal-pairs", name, "--pairs", file, "--json")) for name in ("shakespeare", model)
    ]
    for number, row in enumerate(facts["phenomena"][:2]):
        assert (row["field"], row["phenomenon"], row["judged"]) == ("number", f"prediction {number + 1}", 3)
        assert [row["a"], row["b"]] == [one["predictions"][number]["accuracy"] for one in alone]
    verbs = {(row["condition"], row["region"]): row["surprisal"] for row in alone[1]["regions"]}
    assert verbs["match", 4] == pytest.approx(2 * math.log2(10))
    assert "--unknown exclude-items leaves out all 3 items" in refusal(
        capsys, "compare", "shakespeare", model, "--pairs", file, "--unknown", "exclude-items"
    )


def test_suites_and_pairs_are_two_commands(capsys, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("the king is\tthe king are\n")
    file = _written(tmp_path, copy.deepcopy(_suite()))
    assert "in two commands" in refusal(capsys, "minimal-pairs", "shakespeare", "--pairs", file, pairs)
    assert "regions" in refusal(capsys, "minimal-pairs", "shakespeare", "--pairs", file, "--by", "word")
