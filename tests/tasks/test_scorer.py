"""Scores as columns of tables: of dictionaries, DataFrames, data sets and lists, in this process and in another."""

import pickle

import numpy as np
import pytest

import elman
from elman.errors import UserError
from support.commands import trained

TEXTS = ["w1 w2 w3", "w3", "w1 w1 w1 w1 w2 w9", "", "w2\nw1 strange"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained("words", tmp_path_factory)


@pytest.fixture
def scorer(run):
    return elman.Scorer(run)


def test_the_sums_are_those_of_score(run, scorer):
    found = scorer(TEXTS)
    for text, log_prob, tokens in zip(TEXTS[:3], found["log_prob"], found["tokens"], strict=False):
        ((pieces, log_probs),) = elman.score(run, [text])
        assert log_prob == pytest.approx(float(log_probs.sum()), rel=1e-5)
        assert tokens == len(pieces)
    assert found["unknown"] == [0, 0, 0, 0, 1]
    assert found["text"] == TEXTS
    assert found["tokens"][4] == 5  # <eos> within, and at the end


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"threads": 0}])
def test_numbers_below_one_are_refused(run, wrong):
    with pytest.raises(UserError, match="is 0; it must be 1 or more"):
        elman.Scorer(run, **wrong)


def test_a_text_of_several_lines_is_one_document(run, scorer):
    lines = elman.score(run, ["w2", "w1 strange"], document=True)
    assert scorer([TEXTS[4]])["log_prob"][0] == pytest.approx(
        sum(float(one.log_probs.sum()) for one in lines), rel=1e-5
    )


def test_the_others_in_a_batch_do_not_matter(scorer):
    together = scorer(TEXTS)["log_prob"]
    assert together == pytest.approx([scorer([text])["log_prob"][0] for text in TEXTS], rel=1e-5)
    assert scorer([])["log_prob"] == []


def test_columns_are_added_to_a_dictionary(scorer):
    batch = {"id": np.arange(5), "text": np.array(TEXTS, dtype=object)}
    found = scorer(batch)
    assert set(found) == {"id", "text", "log_prob", "tokens", "unknown"}
    assert set(batch) == {"id", "text"}
    assert found["log_prob"].dtype == np.float64
    assert found["tokens"].dtype == found["unknown"].dtype == np.int64


def test_lists_of_tokens(run):
    found = elman.Scorer(run, per_token=True, prefix="lm_")({"text": TEXTS})
    assert found["lm_token_texts"][1] == ["w3", "<eos>"]
    for total, each in zip(found["lm_log_prob"], found["lm_token_log_probs"], strict=True):
        assert total == pytest.approx(sum(each), rel=1e-5)
    arrays = elman.Scorer(run, per_token=True)({"text": np.array(TEXTS, dtype=object)})
    assert arrays["token_texts"].shape == (5,)


def test_excluded_words_are_in_no_sum(run):
    kept = elman.Scorer(run, unknown="exclude", per_token=True)(["w1 strange w2"])
    assert (kept["tokens"], kept["unknown"]) == ([3], [1])
    assert np.isnan(kept["token_log_probs"][0][1])


def test_it_travels_without_the_run(scorer):
    before = scorer(TEXTS)
    data = pickle.dumps(scorer)
    assert len(data) < 1000
    assert pickle.loads(data)(TEXTS) == before


def test_data_frames(run, scorer):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "id": range(5)}, index=range(10, 15))
    found = scorer(frame)
    assert list(found.columns) == ["text", "id", "log_prob", "tokens", "unknown"]
    assert list(found.index) == list(frame.index)
    assert found["log_prob"].tolist() == scorer(TEXTS)["log_prob"]
    two = list(scorer.batches(iter([frame[:2], frame[2:]])))
    assert pandas.concat(two)["tokens"].tolist() == found["tokens"].tolist()
    assert list(scorer(frame[:0]).columns) == list(found.columns)


def test_data_sets(scorer):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    found = datasets.Dataset.from_dict({"text": TEXTS}).map(scorer, batched=True, batch_size=2)
    assert found["log_prob"][:] == pytest.approx(scorer(TEXTS)["log_prob"], rel=1e-5)
    assert found.column_names == ["text", "log_prob", "tokens", "unknown"]


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"words": ["a"]}, "has no column 'text'; it has words"),
        ({"text": ["a", None]}, "row 1 of the column 'text' is no text but None"),
        ({"text": ["a"], "tokens": [1]}, "already has a column 'tokens'"),
        ("a text", "a batch of texts is"),
    ],
)
def test_mistakes(scorer, batch, words):
    with pytest.raises(UserError, match=words):
        scorer(batch)
    with pytest.raises(UserError, match="give score or exclude"):
        elman.Scorer("runs/none", unknown="spread")
