"""A run against the n-grams of its text: every figure found again in another way."""

import numpy as np
import pytest
import torch

from elman.evaluation.measures import edit_distance
from elman.evaluation.ngram import kneser_ney
from elman.evaluation.perplexity import average_probabilities
from elman.study.claims.counts import MEASURE, Channel, Confusion, Models, against_counts, hear, lines_of
from elman.tasks.experiment import Experiment
from elman.tasks.text.ensemble import member_log_probs, own_counts
from elman.tasks.text.rescoring import Mix
from elman.tasks.text.run import TextRun
from support import text_runs

CHANNEL = Channel(neighbours=3, noise=3.0, size=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("counts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMAN_CACHE", str(place / "cache"))
        data = text_runs.write_corpus(place / "corpus")
        experiment = Experiment(text_runs.recipe(epochs=1), place / "run", data=data)
        experiment.train()
        yield place / "run"


def test_perplexities_are_those_of_the_run_the_counts_and_their_interpolation(folder):
    found = against_counts(folder, order=3, share=0.75, utterances=5, channel=CHANNEL._asdict()).figures
    assert found.keys() == set(MEASURE.metrics)
    run = TextRun(folder)
    split = run.split(run.corpus(), "test")

    def perplexity_of(ngram, weights):
        counts = [] if ngram is None else [own_counts(run, ngram)]
        return np.exp(-average_probabilities(member_log_probs([run], split, counts), weights).mean())

    assert found["perplexity, network"] == pytest.approx(perplexity_of(None, None), rel=1e-5)
    assert found["perplexity, 5-gram"] == pytest.approx(perplexity_of(3, [0.0, 1.0]), rel=1e-5)
    assert found["perplexity, both"] == pytest.approx(perplexity_of(3, [0.75, 0.25]), rel=1e-5)
    assert found["both / 5-gram"] == pytest.approx(found["perplexity, both"] / found["perplexity, 5-gram"])
    assert found["network / 5-gram"] == pytest.approx(found["perplexity, network"] / found["perplexity, 5-gram"])


def test_sentences_are_scored_by_each_model_on_its_own(folder):
    run = TextRun(folder)
    counts = kneser_ney.train(run.corpus().split("train").tokens, len(run.vocabulary), 3)
    sentences = [np.array([3, 1, 4, 1]), np.array([2]), np.array([5, 2, 1])]
    by_counts, by_network, both = Models(run, counts, 0.75).log_probs(sentences)
    for index, ids in enumerate(sentences):
        read, predicted = (torch.tensor(column)[:, None] for column in ([run.first, *ids[:-1].tolist()], ids.tolist()))
        log_probs, _ = run.model.log_prob(read, predicted, run.model.begin(1))
        alone = log_probs.detach().numpy()[:, 0]
        counted = counts.log_prob(ids, [run.first])
        assert by_network[index] == pytest.approx(alone.sum(), rel=1e-5)
        assert by_counts[index] == pytest.approx(counted.sum())
        assert both[index] == pytest.approx(np.log(0.75 * np.exp(alone) + 0.25 * np.exp(counted)).sum(), rel=1e-5)


def test_lists_are_of_lines_that_are_known(folder):
    run = TextRun(folder)
    confusion = Confusion(run.vocabulary.words, CHANNEL, [run.vocabulary.eos])
    lists = hear(run, confusion, run.corpus().split("test").tokens, 6, [1, 1])
    said = set((folder.parent / "corpus" / "test.txt").read_text().splitlines())
    assert len(lists.references) == 6
    assert set(lists.references.values()) <= said
    assert len(lists.hypotheses) == len(lists.ids) == 30
    assert all(ids[-1] == run.vocabulary.eos for ids in lists.ids)
    assert [run.vocabulary.words[word] for word in lists.ids[0][:-1]] == lists.hypotheses[0].text.split()
    best = [one for one, other in zip(lists.hypotheses, [None, *lists.hypotheses], strict=False)
            if other is None or other.utterance != one.utterance]  # fmt: skip
    errors = sum(edit_distance(one.text.split(), lists.references[one.utterance].split()) for one in best)
    assert lists.trial([0.0] * 30).error_rate(Mix(weight=0.0)) == pytest.approx(errors / 54)


def test_lines_are_what_stands_between_their_ends():
    assert list(lines_of(np.array([4, 5, 1, 1, 6, 1, 7]), 1)) == [[4, 5], [], [6]]
