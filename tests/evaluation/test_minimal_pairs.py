"""Minimal pairs: files, tokens, scores of shared beginnings, tables."""

import json
from collections import Counter

import numpy as np
import pytest
import torch

from elman.config.text import TextOptions
from elman.data.catalog.known import locate_minimal_pairs
from elman.data.minimal_pairs import Pair, read_pairs
from elman.data.text.sentences import Lexicon, fit
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.evaluation.minimal_pairs import BOUNDARY, by_field, code, judge_pairs, levels_of, sentence_log_probs
from elman.evaluation.scoring import score_sentences
from elman.evaluation.statistics import Proportion
from support import networks

WORDS = Vocabulary.from_counts(Counter(["the", "the", "cat", "cats", "sees", "see", "n't", "do", "dog"]), add_unk=True)


@pytest.mark.parametrize("contexts", ["single", "doc"])
def test_the_tree_of_prefixes_scores_as_sentence_by_sentence(contexts):
    torch.manual_seed(0)
    model = networks.model(contexts).eval()
    draw = np.random.default_rng(1)
    sentences = [draw.integers(0, 3, length).astype(np.int32) for length in (5, 1, 7, 3, 3, 7, 1, 4) * 6]
    expected = [scores.sum() for scores in score_sentences(model, sentences, 0)]
    np.testing.assert_allclose(sentence_log_probs(model, sentences, 0), expected, rtol=1e-5)


def test_a_word_that_is_only_spelt_is_judged_with_its_end():
    torch.manual_seed(0)
    model = networks.model().eval()
    lists = [1, 2, BOUNDARY], [1, 2, 3, BOUNDARY], [1, BOUNDARY], [2, 2]
    sentences = [np.array(ids, dtype=np.int32) for ids in lists]
    inputs = [np.where(ids == BOUNDARY, 0, ids) for ids in sentences]

    def after(ids):
        state, read = model.begin(1), torch.tensor([[0, *ids]]).t()
        with torch.inference_mode():
            found = model.log_probs(read, state)[0][:, 0].double()
        return sum(found[place, one] for place, one in enumerate(ids)) + found[-1, [0, 3]].logsumexp(-1)

    expected = [*(after(ids[:-1].tolist()) for ids in sentences[:3]), next(score_sentences(model, [[2, 2]], 0)).sum()]
    found = sentence_log_probs(model, sentences, 0, inputs=inputs, boundaries=[0, 3])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found[0] < sentence_log_probs(model, [sentences[0][:2]], 0)[0], "the end has a probability of its own"


@pytest.mark.parametrize(("tokenisation", "tokens"), [("characters", "cat walks"), ("words", ["cat", "walks"])])
def test_only_spelt_words_have_an_end_of_their_own(tokenisation, tokens):
    words = Vocabulary.from_counts(Counter([*tokens, "walk", " "]), add_unk=True)
    pair = Pair("cat walks", "cat walk", "verb", tokenised=True, whole=False)
    (coded,) = code([pair], words, Tokeniser(TextOptions(tokenisation=tokenisation)))
    assert (coded.good[-1] == BOUNDARY, coded.bad[-1] == BOUNDARY) == (tokenisation == "characters",) * 2


def test_capitals_of_tokenised_sentences_are_folded_where_the_vocabulary_has_none():
    pair = Pair("The CAT Zebra sees", "The CAT Zebra see", "verb", tokenised=True, whole=False)
    (coded,) = code([pair], WORDS, Tokeniser(TextOptions()))
    assert WORDS.decode(coded.good) == ["the", "cat", "<unk>", "sees"]
    assert coded.unknown == ("Zebra",)


def test_shared_beginnings_are_one_node():
    sentences = [np.array(ids) for ids in ([1, 2, 3], [1, 2, 4], [5])]
    levels, paths = levels_of(sentences, sentences)
    assert [len(level.symbols) for level in levels] == [2, 1, 2]
    assert paths == [[0, 0, 0], [0, 0, 1], [1]]
    assert levels[2].parents.tolist() == [0, 0]


def test_files_of_all_three_kinds(tmp_path):
    record = {"sentence_good": "A b.", "sentence_bad": "B a.", "UID": "order", "linguistics_term": "syntax"}
    (tmp_path / "order.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "agr.text").write_text("the cat of the dogs sees it . <eos>\n")
    (tmp_path / "agr.gold").write_text("5\tsees\tsee\t1\n")
    (tmp_path / "own.tsv").write_text("a b\tb a\tword order\nc d\td c\n")
    found = read_pairs([str(tmp_path)])
    assert found == read_pairs([str(tmp_path / name) for name in ("agr.text", "order.jsonl", "own.tsv")])
    assert found[0].good == "the cat of the dogs sees"
    assert not found[0].whole
    assert [pair.phenomenon for pair in found] == ["1 attractor", "order", "word order", "own"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"sentence_good": "x"}\n', "a.jsonl:1: not a record with sentence_good and sentence_bad"),
        ("a.tsv", "first\tsecond\na b\tb a\n", "a.tsv:1: 'first\\tsecond' may be a header or a pair"),
        ("a.jsonl", '{"sentence_good": "x", "sentence_bad": null}\n', "a.jsonl:1: not a record with sentence_good"),
        ("a.jsonl", '{"sentence_good": "x", "sentence_bad": " "}\n', "a.jsonl:1: sentence_bad is empty; write both"),
        ("a.jsonl", '["x", "y"]\n', "a.jsonl:1: not a record with sentence_good"),
        ("a.tsv", "one sentence\n", "a.tsv:1: found 'one sentence'; write good TAB bad"),
        ("a.tsv", "\n", "a.tsv: the file is empty"),
        ("a.gold", "1\tsees\tsee\t0\n", "word 1 of the sentence should be 'sees', found 'cat'"),
        ("a.gold", "1 sees see 0\n", "a.gold:1: found '1 sees see 0'; write: index TAB right form"),
        ("a.gold", "1\tsees\tsee\t0\n2\tsees\tsee\t0\n", "a.gold: 2 lines, but"),
    ],
)
def test_wrong_files_of_minimal_pairs_are_named(tmp_path, name, text, message):
    (tmp_path / "a.text").write_text("the cat sees\n")
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as error:
        read_pairs([str(tmp_path / name)])
    assert message in str(error.value)


def test_places_without_minimal_pairs_are_named(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="no file of minimal pairs"):
        read_pairs([str(tmp_path)])
    with pytest.raises(UserError, match="cannot be read"):
        read_pairs([str(tmp_path / "no.tsv")])
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path))
    with pytest.raises(UserError, match=r"corpora.blimp.*run: `elman data prepare blimp`"):
        locate_minimal_pairs("blimp")


def test_ordinary_text_is_read_as_the_vocabulary_is():
    options = Tokeniser(TextOptions())
    assert fit("The cat's dogs don't see!", WORDS, options) == ["the", "cat's", "dogs", "do", "n't", "see"]
    assert fit("ab c", WORDS, Tokeniser(TextOptions(tokenisation="characters"))) == list("ab c")
    assert fit("The dog.", WORDS, Tokeniser(TextOptions(tokenisation="raw"))) == ["The", "dog", "."]


def test_pairs_that_differ_in_unknown_words_only_are_counted_apart():
    pairs = [
        Pair("The cat sees.", "The cat see.", "verb", "agreement"),
        Pair("The zebra sees.", "The zebra see.", "verb", "agreement"),
        Pair("The cat walks.", "The cat walk.", "verb", "agreement"),
        Pair("The dog sees.", "Sees the dog.", "order", "syntax"),
    ]
    coded = code(pairs, WORDS, Tokeniser(TextOptions()))
    assert [(pair.unknown, pair.same) for pair in coded] == [
        ((), False),
        (("zebra",), False),
        (("walk", "walks"), True),
        ((), False),
    ]
    assert coded[0].good[-1] == WORDS.eos
    sees = WORDS.ids["sees"]
    rows = judge_pairs(coded, lambda sentences, _: np.array([float(ids[2] == sees) for ids in sentences]))
    assert [(row.phenomenon, row.pairs, row.same) for row in rows] == [("verb", 3, 1), ("order", 1, 0), ("all", 4, 1)]
    assert rows[0].accuracy == Proportion(2, 2)
    assert rows[0].known == Proportion(1, 1)
    assert rows[-1].accuracy == Proportion(3, 3)
    assert [row.phenomenon for row in by_field(rows)] == ["agreement", "syntax"]


def test_unknown_words_that_are_spelled_are_judged_by_what_follows():
    pairs = [
        Pair("The zebra sees.", "The zebras sees.", "verb", "agreement"),
        Pair("The cat walks.", "The cat walk.", "verb", "agreement"),
        Pair("the cat walks", "the cat walk", "verb", "agreement", tokenised=True, whole=False),
    ]
    lexicon = Lexicon(WORDS)
    coded = code(pairs, WORDS, Tokeniser(TextOptions()), lexicon)
    assert lexicon.words == ["zebra", "zebras", "walks", "walk"]
    assert [(len(pair.unknown), pair.same) for pair in coded] == [(2, False), (2, False), (2, True)]
    good, bad = coded[0].read
    assert [int(ids[1]) - len(WORDS) for ids in (good, bad)] == [0, 1]
    np.testing.assert_array_equal(coded[0].good, coded[0].bad)


def test_the_tree_reads_one_thing_and_predicts_another():
    torch.manual_seed(0)
    model = networks.model().eval()
    sentences = [np.array(ids, dtype=np.int32) for ids in ([1, 2, 2], [1, 2, 3], [1, 2, 3])]
    inputs = [np.array(ids, dtype=np.int32) for ids in ([1, 5, 2], [1, 6, 3], [1, 2, 3])]
    expected = [scores.sum() for scores in score_sentences(model, sentences, 0, inputs=inputs)]
    np.testing.assert_allclose(sentence_log_probs(model, sentences, 0, inputs=inputs), expected, rtol=1e-5)
    assert len(set(expected)) == 3


def test_a_tie_is_not_right():
    coded = code([Pair("The dog sees.", "Sees the dog.", "order", "syntax")] * 3, WORDS, Tokeniser(TextOptions()))
    rows = judge_pairs(coded, lambda *_: np.array([-1.0, -1.0, -1.0, -2.0, -2.0, -1.0]))
    assert rows[-1].accuracy == Proportion(1, 3)


def test_known_pairs_are_those_without_unknown_words():
    """Of three pairs the two with a zebra are wrong, the one of known words right."""
    pairs = [Pair(f"The {noun} sees.", f"The {noun} see.", "verb") for noun in ("cat", "zebra", "zebra")]
    coded = code(pairs, WORDS, Tokeniser(TextOptions()))
    rows = judge_pairs(coded, lambda *_: np.array([-1.0, -2.0, -2.0, -1.0, -2.0, -1.0]))
    assert rows[0].accuracy == Proportion(1, 3)
    assert rows[0].known == Proportion(1, 1)
