"""Agreement: a model that is the grammar is right everywhere; components are those of a decomposition."""

import math
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from elman.analysis.agreement import Distance, Judged, judge, line, of_known_words, principal_components, table
from elman.analysis.grammar import as_facts, cells
from elman.data.grammar.exact import Oracle
from elman.data.grammar.reading import parse_grammar, read_grammar
from elman.data.grammar.sample import Wish, sentences
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError

GRAMMAR = read_grammar("elman-1991")
WORDS = Vocabulary.from_counts(Counter(GRAMMAR.vocabulary))


def test_the_grammar_itself_makes_no_mistake():
    wish = Wish(complex=0.8)
    oracle = Oracle(GRAMMAR, wish, WORDS.words)
    distance, judged = Distance(oracle, WORDS), []
    for sentence in islice(sentences(GRAMMAR, wish, "0"), 60):
        rows, parses = [], oracle.begin()
        for word in [*sentence.words, "<eos>"]:
            rows.append(oracle.next_words(parses))
            parses = oracle.read(parses, word) if word != "<eos>" else parses
        with np.errstate(divide="ignore"):
            log_probs = np.log(np.array(rows))
        judged += judge(GRAMMAR, WORDS, sentence, log_probs)
        distance.add(sentence, log_probs)
    found = distance.closeness
    assert found.divergence == pytest.approx(0, abs=1e-9)
    assert found.model == pytest.approx(found.grammar)
    assert line("all", judged).accuracy.share == 1.0
    assert line("all", judged).share == pytest.approx(1.0)
    lines = table(judged, lambda one: one.levels, str)
    assert [one.label for one in lines[:3]] == ["0", "1", "2"]
    assert sum(one.accuracy.count for one in lines) == len(judged)


def test_a_coin_is_right_half_the_time():
    (sentence,) = islice(sentences(GRAMMAR, Wish(), "0"), 1)
    even = np.log(np.full((len(sentence.words) + 1, len(WORDS)), 1 / len(WORDS)))
    assert all(one.share == pytest.approx(0.5) and not one.correct for one in judge(GRAMMAR, WORDS, sentence, even))


def test_a_form_of_several_values_counts_for_the_right_one_of_them():
    """After the verb a determiner in the case that it asks for: den and dem are dative, den also accusative."""
    grammar = parse_grammar(
        "start S\nfeature case nom acc dat\ncontrollers V\ntargets D\nS -> V[c] D[c]\nV[nom] : ist\nV[acc] : sieht\n"
        "V[dat] : hilft\nD[nom] : der die das\nD[acc] : den die das\nD[dat] : dem den das\n"
    )
    words = Vocabulary.from_counts(Counter(dict.fromkeys(grammar.vocabulary, 1)))
    chances = {"der": 0.1, "die": 0.2, "das": 0.3, "den": 0.05, "dem": 0.15}
    row = np.log([chances.get(word, 0.2 / (len(words) - len(chances))) for word in words.words])
    found = {
        one.dependency.value: (one.right_mass, one.wrong_mass)
        for sentence in islice(sentences(grammar, Wish(), "0"), 60)
        for one in judge(grammar, words, sentence, np.tile(row, (3, 1)))
    }
    assert set(found) == {"nom", "acc", "dat"}
    for value, (right, wrong) in {"nom": (0.3, 0.2), "acc": (0.25, 0.25), "dat": (0.2, 0.3)}.items():
        assert found[value] == pytest.approx((right, wrong)), value


def test_the_margin_of_the_share_is_students_over_the_sample_deviation():
    """Shares .2, .4 and .9: deviation .3606 (n - 1), quantile 4.3027 of two degrees of freedom."""
    found = line("all", [Judged(None, share > 0.5, share, 1 - share) for share in (0.2, 0.4, 0.9)])
    assert found.share == pytest.approx(0.5)
    assert found.margin == pytest.approx(4.3026527 * 0.3605551 / 3**0.5)
    assert found.accuracy.successes == 1
    assert as_facts(found)["margin_of_share"] == found.margin


def test_a_single_verb_has_no_margin():
    alone = line("one", [Judged(None, True, 1.0, 0.0)])
    assert math.isnan(alone.margin)
    assert as_facts(alone)["margin_of_share"] is None
    assert cells(alone)[-1] == "100.00"
    more = line("two", [Judged(None, True, share, 1 - share) for share in (1.0, 0.5)])
    assert cells(more)[-1] == f"75.00 ± {100 * more.margin:.2f}"


def test_unknown_words_are_named_and_left_out_in_both_forms(capsys):
    drawn = list(islice(sentences(GRAMMAR, Wish(), "0"), 200))
    few = Vocabulary.from_counts(Counter(["boy", "x"]))
    with pytest.raises(UserError, match=r"does not know 22 of the 23 words of elman-1991 \(girl, cat, dog, boys"):
        of_known_words(GRAMMAR, few, drawn, leave_out=False)
    with pytest.raises(UserError, match=r"200 of 200 sentences"):
        of_known_words(GRAMMAR, few, drawn, leave_out=True)
    some = Vocabulary.from_counts(Counter(set(GRAMMAR.vocabulary) - {"walks", "dogs"}))
    found = of_known_words(GRAMMAR, some, drawn, leave_out=True)
    left = [one for one in drawn if {"walks", "dogs"} & set(one.words)]
    assert found.unknown.words == ("dogs", "walks")
    assert found.unknown.strange == len(left) > 0
    links = [link for one in found.sentences for link in one.dependencies]
    assert "walk" in {word for one in found.sentences for word in one.words}
    assert not {"walk", "walks"} & {word for link in links for word in (link.right, link.wrong)}
    assert found.pairs == sum(len(one.dependencies) for one in drawn) - len(links)
    assert f"(dogs, walks): {len(left)} of 200 sentences and {found.pairs} of" in capsys.readouterr().err
    assert GRAMMAR.forms("number", some.ids)["pl"] == GRAMMAR.forms("number", set(GRAMMAR.vocabulary) - {"walk"})["pl"]


def test_components_are_those_of_the_singular_value_decomposition():
    draw = np.random.default_rng(0)
    states = [draw.normal(size=(30, 6)) @ np.diag([3, 2, 1, 0.5, 0.2, 0.1]) + 5 for _ in range(3)]
    found = principal_components(states, 3)
    together = np.concatenate(states)
    _, values, axes = np.linalg.svd(together - together.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(found.axes @ axes[:3].T), np.eye(3), atol=1e-8)
    np.testing.assert_allclose(found.shares, values[:3] ** 2 / (values**2).sum())
    np.testing.assert_allclose(found.project(together).mean(axis=0), 0, atol=1e-10)


def test_the_divergence_is_that_of_the_grammar_from_the_model():
    """Against even odds over V words it is log V less the entropy of the grammar's next word, summed as it reads."""
    wish = Wish(complex=0.8)
    oracle = Oracle(GRAMMAR, wish, WORDS.words)
    distance, expected, words = Distance(oracle, WORDS), 0.0, 0
    for sentence in islice(sentences(GRAMMAR, wish, "0"), 5):
        parses = oracle.begin()
        for word in [*sentence.words, "<eos>"]:
            true = oracle.next_words(parses)
            true = true[true > 0]
            expected += math.log(len(WORDS)) + float((true * np.log(true)).sum())
            words += 1
            parses = oracle.read(parses, word) if word != "<eos>" else parses
        distance.add(sentence, np.full((len(sentence.words) + 1, len(WORDS)), -math.log(len(WORDS))))
    found = distance.closeness
    assert found.words == words
    assert found.divergence == pytest.approx(expected / words)
    assert found.model == pytest.approx(math.log(len(WORDS)))
