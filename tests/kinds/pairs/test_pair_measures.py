"""Measures of output: against hand computation and the libraries' own totals; resampling; baselines."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from scipy import stats

from elman.data.trees.brackets import bracketed, linear, read_trees, to_tree
from elman.errors import UserError, said
from elman.evaluation.branching import branching
from elman.evaluation.measures import brackets, tree_measures
from elman.evaluation.statistics import Measure, difference, differences, estimate, estimates
from elman.kinds.pairs.corpus import open_pairs
from elman.kinds.pairs.letters import CONTEXTS, aligned, letter_by_letter
from elman.kinds.pairs.measures import Rules, baseline, bleu, measures, references, rouge, rules_of
from elman.kinds.pairs.record import PairOptions

REFERENCES = ["the cat sat on the mat .", "a dog barks at the moon .", "he reads ."]
HYPOTHESES = ["the cat is on the mat .", "a dog barks .", "she writes books ."]


def values(found):
    return {measure.name: measure.value for measure in found}


def f1(matches, hypothesis, reference):
    return 200 * matches / (hypothesis + reference)


def test_rouge_by_hand():
    """Lin 2004: clipped n-gram matches and the longest common subsequence, F1; marks are no English words."""
    found = values(rouge(HYPOTHESES, REFERENCES))
    assert found["ROUGE-1"] == pytest.approx(np.mean([f1(5, 6, 6), f1(3, 3, 6), 0]))
    assert found["ROUGE-2"] == pytest.approx(np.mean([f1(3, 5, 5), f1(2, 2, 5), 0]))
    assert found["ROUGE-L"] == pytest.approx(np.mean([f1(5, 6, 6), f1(3, 3, 6), 0]))


def test_rouge_of_japanese_needs_words_at_spaces(capsys):
    lines = ["猫 が 鳴く"], ["猫 は 鳴く"]
    assert values(rouge(*lines, words="spaces"))["ROUGE-1"] == pytest.approx(f1(2, 3, 3))
    assert capsys.readouterr().err == ""
    said.cache_clear()
    assert values(rouge(*lines))["ROUGE-1"] == 0
    assert "1 of 1 reference without a word of a-z and 0-9, for which ROUGE is 0" in capsys.readouterr().err


def test_bleu_of_japanese_without_spaces_is_reported(capsys):
    said.cache_clear()
    lines = ["猫が鳴くのを聞きました。", "犬が走る"], ["猫が鳴くのを見ました。", "犬が走る"]
    assert values(bleu(*lines, tokens="char"))["BLEU"] > 0
    bleu(["犬 が 走る"] * 2, ["犬 が 走る"] * 2)
    bleu(*lines)
    assert capsys.readouterr().err == ""
    bleu(*(side[:1] for side in lines))
    assert (
        "1 of 1 reference without spaces between words, which BLEU counts as one word each" in capsys.readouterr().err
    )


def test_right_branching_trees_where_training_has_no_such_constituents():
    """Words under the root alone, and phrases that begin later: no label of whole sentences."""
    assert branching(["XX XX"], ["a b"], ["c d e"]) == ["(S XX (S XX XX )S )S"]
    assert branching(["XX (NP XX XX )NP"], ["a b c"], ["c d e"]) == ["(NP XX (NP XX XX )NP )NP"]
    trees = ["(S (NP XX XX )NP XX )S", "(S XX (VP XX XX )VP )S"]
    assert branching(trees, ["a b c"] * 2, ["c d e ."]) == ["(S XX (VP XX XX )VP XX )S"]
    assert branching(trees, ["a b c"] * 2, ["c d e ."], left=True) == ["(S (NP XX XX )NP XX XX )S"]


def test_sums_of_sentences_give_the_libraries_own_totals():
    found = bleu(HYPOTHESES, REFERENCES)
    metrics = BLEU(tokenize="none"), CHRF()
    for measure, metric in zip(found, metrics, strict=True):
        assert measure.value == pytest.approx(metric.corpus_score(HYPOTHESES, [REFERENCES]).score)
        assert measure.signature == str(metric.get_signature())
    assert "tok:none" in found[0].signature


def test_an_interval_is_that_of_the_normal_law_for_a_mean():
    draw = np.random.default_rng(0).normal(5, 2, size=400)
    measure = Measure("mean", np.stack([draw, np.ones(400)], 1), lambda sums: sums[0] / sums[1])
    figure = estimate(measure, 4000)
    error = 1.96 * draw.std() / 20
    assert figure.value == pytest.approx(draw.mean())
    assert figure.low == pytest.approx(draw.mean() - error, abs=0.1 * error)
    assert figure.high == pytest.approx(draw.mean() + error, abs=0.1 * error)


@pytest.mark.parametrize("shift", [0.0, 0.12, 0.3])
def test_randomisation_agrees_with_the_paired_t_test(shift):
    generator = np.random.default_rng(1)
    a = generator.normal(size=300)
    b = a + generator.normal(size=300) + shift - (generator.normal(size=300).mean())
    made = [Measure("mean", np.stack([x, np.ones(300)], 1), lambda sums: sums[0] / sums[1]) for x in (a, b)]
    found = difference(*made, samples=4000)
    assert found.difference == pytest.approx((b - a).mean())
    assert found.p_value == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=0.03)
    assert (found.low > 0) == (found.p_value < 0.05) or abs(found.p_value - 0.05) < 0.02


def test_a_system_does_not_differ_from_itself():
    for rules in (Rules("headlines"), Rules("translation")):
        found = measures(HYPOTHESES, REFERENCES, rules)
        assert all(one.p_value == 1 and one.low == one.high == 0 for one in differences(found, found, 50))
        assert estimates(found, 50) == estimates(found, 50)


GOLD = "(ROOT (S (NP-SBJ (DT The) (NN cat)) (VP (VBD sat) (PRT (RP up)) (PP (IN on) (NP (NN mats)))) (. .)))"
FOUND = "(ROOT (S (NP (DT The) (NN cat)) (VP (VBD sat) (ADVP (RB up) (IN on)) (NP (NN mats)) (. .))))"


def lines(tree):
    return " ".join(linear(read_trees(tree, "t")[0]))


def test_brackets_by_hand():
    """Punctuation is nowhere, ROOT is no bracket, NP-SBJ is NP, PRT is ADVP; words: The cat sat up on mats."""
    gold = {("S", 0, 6), ("NP", 0, 2), ("VP", 2, 6), ("ADVP", 3, 4), ("PP", 4, 6), ("NP", 5, 6)}
    assert brackets(read_trees(GOLD, "t")[0]) == Counter(gold)
    ours = {("S", 0, 6), ("NP", 0, 2), ("VP", 2, 6), ("ADVP", 3, 5), ("NP", 5, 6)}
    assert brackets(read_trees(FOUND, "t")[0]) == Counter(ours)
    found = values(tree_measures([lines(FOUND)], [lines(GOLD)], ["The cat sat up on mats ."]))
    assert found["precision"] == pytest.approx(100 * 4 / 5)
    assert found["recall"] == pytest.approx(100 * 4 / 6)
    assert found["bracket F1"] == found["unlabelled F1"] == pytest.approx(f1(4, 5, 6))
    assert found["whole trees"] == 0
    assert found["well-formed"] == 100


def test_a_tree_is_its_own_best_parse():
    line = lines(GOLD)
    found = values(tree_measures([line], [line], ["The cat sat up on mats ."]))
    assert set(found.values()) == {100}


@pytest.mark.parametrize(
    ("written", "tree", "repairs"),
    [
        ("(S (NP XX )NP (VP XX )VP )S", "(ROOT (S (NP (XX a)) (VP (XX b))))", 0),
        ("(S (NP XX (VP XX )VP )S", "(ROOT (S (NP (XX a) (VP (XX b)))))", 1),
        ("(S (NP XX )NP )PP (VP XX )VP )S", "(ROOT (S (NP (XX a)) (VP (XX b))))", 1),
        ("(S (NP XX )NP (VP XX", "(ROOT (S (NP (XX a)) (VP (XX b))))", 2),
        ("(S (NP XX )NP )S", "(ROOT (S (NP (XX a)) (XX b)))", 1),
        ("(S (NP XX XX XX )NP )S", "(ROOT (S (NP (XX a) (XX b))))", 1),
        ("(S (ADVP )ADVP (NP XX XX )NP )S", "(ROOT (S (NP (XX a) (XX b))))", 1),
        ("", "(ROOT (XX a) (XX b))", 2),
        ("(NP XX )NP (VP XX )VP", "(ROOT (NP (XX a)) (VP (XX b)))", 0),
    ],
)
def test_what_is_not_well_formed_is_repaired(written, tree, repairs):
    found = to_tree(written.split(), ["a", "b"])
    assert (bracketed(found.tree), found.repairs) == (tree, repairs)


def test_a_reference_that_does_not_fit_is_told():
    with pytest.raises(UserError, match="reference tree of line 1 does not fit its 2 words"):
        tree_measures(["(S XX )S"], ["(S XX )S"], ["two words"])


def corpus_of(folder, content, **options):
    path = folder / "pairs.txt"
    path.write_text("\n".join(content) + "\n", encoding="utf-8")
    return open_pairs(path, PairOptions(valid=1, test=1, split="last", **options))


def test_baselines_of_pairs_are_scored(tmp_path):
    pairs = [f"w{n} one two three four\tw{n} two" for n in range(6)]
    for kind, says in {"headlines": ("first 2 words", "w5 one"), "translation": ("copied source", None)}.items():
        corpus = corpus_of(tmp_path, pairs, measures=kind)
        name, output = baseline(corpus, corpus.split("test"))
        assert (name, output[0]) == (says[0], says[1] or "w5 one two three four")
    assert references(corpus.split("test"), corpus.symbols) == ["w5 two"]


def test_sequences_are_measured_by_source_beside_the_most_frequent_target(tmp_path):
    """Two pronunciations of one word: either is right, and the word counts once."""
    pairs = ["b o w\tB OW", "l o w\tL OW", "b o w s\tB OW", "r o w\tR OW", "t o\tT UW", "t o\tT AH"]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(pairs) + "\n")
    corpus = open_pairs(path, PairOptions(valid=1, test=2, split="last", measures="sequences"))
    test, rules = corpus.split("test"), rules_of(corpus.options)
    assert baseline(corpus, test) == ("most frequent target", ["B OW", "B OW"])
    assert rules_of(PairOptions(measures="sequences", tokenisation="characters")).unit == "characters"
    found = measures(["T AH", "T AH"], references(test, corpus.symbols), rules, test.source_text)
    assert values(found) == {"exact match": 100, "error rate": 0}
    assert values(measures(["T AH", "T AH"], references(test, corpus.symbols), rules))["exact match"] == 50


def test_letters_are_written_as_they_are_most_often_in_the_widest_context_that_training_has(tmp_path):
    """`c` is S before e and i and K elsewhere, `x` is two sounds, a last `e` none: learnt from contexts alone."""
    sound = {"a": "AH", "c": "K", "e": "EH", "i": "IH", "n": "N", "t": "T", "x": "K S"}

    def spoken(word):
        rows = [
            "S" if letter == "c" and after in "ei" else "" if (letter, after) == ("e", " ") else sound[letter]
            for letter, after in itertools.pairwise(word + " ")
        ]
        return " ".join(filter(None, rows))

    rows = ["".join(one) for n in (2, 3, 4) for one in itertools.product("aceintx", repeat=n)]
    words = [word for word in rows if spoken(word)]
    random.Random(0).shuffle(words)
    path = tmp_path / "words.txt"
    path.write_text("".join(f"{word}  {spoken(word)}\n" for word in words[:1200]))
    corpus = open_pairs(path, PairOptions(form="pronunciations", measures="sequences", valid=50, test=100))
    test = corpus.split("test")
    right, rules, letters = references(test, corpus.symbols), rules_of(corpus.options), aligned(corpus)
    alone, around = (
        values(measures(letter_by_letter(letters, corpus, test, contexts=some), right, rules, test.source_text))[
            "exact match"
        ]
        for some in (CONTEXTS[-1:], CONTEXTS)
    )
    assert alone < 85
    assert around > 95


def test_of_chunks_that_are_equally_frequent_the_first_one_is_written(tmp_path):
    for name, lines in {"train": ["ab  A B", "ab(1)  A B X"], "valid": ["ab  A B"], "test": ["ab  A B"]}.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    corpus = open_pairs(tmp_path, PairOptions(form="pronunciations", measures="sequences"))
    assert letter_by_letter(aligned(corpus), corpus, corpus.split("test")) == ["A B"]


def test_the_right_branching_baseline(tmp_path):
    corpus = corpus_of(tmp_path, [GOLD] * 2 + [GOLD.replace("cat", f"cat{n}") for n in range(3)], form="trees")
    name, output = baseline(corpus, corpus.split("test"))
    assert name == "right-branching"
    assert output == ["(S XX (NP XX (NP XX (NP XX (NP XX XX )NP )NP )NP )NP XX )S"]
    assert rules_of(corpus.options).kind == "trees"
    found = measures(
        output, corpus.split("test").target_text, rules_of(corpus.options), corpus.split("test").source_text
    )
    assert 0 < found[0].value < found[3].value < 100
