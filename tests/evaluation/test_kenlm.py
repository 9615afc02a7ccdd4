"""The same ARPA file queried by elman and by KenLM, where its package is installed."""

from collections import Counter

import numpy as np
import pytest

from elman.data.text.vocabulary import Vocabulary
from elman.evaluation.ngram.arpa import LN10, read_arpa
from elman.evaluation.ngram.arpa_writing import write_arpa
from elman.evaluation.ngram.model import NGramModel, train
from elman.evaluation.ngram.pruning import prune

kenlm = pytest.importorskip("kenlm", reason="KenLM's package is not installed (PyPI kenlm 0.3.0)")

pytestmark = pytest.mark.filterwarnings("ignore")


def sentences(count, seed, words=30):
    draw = np.random.default_rng(seed)
    chain = draw.dirichlet(np.full(words, 0.1), words)
    for _ in range(count):
        line, word = [], 0
        for _ in range(draw.integers(0, 9)):
            word = draw.choice(words, p=chain[word])
            line.append(f"w{word}")
        yield line


def model_of(order, thresholds=(), threshold=None, stream=False):
    words = [word for line in sentences(300, 0) for word in (*line, "<eos>")]
    vocabulary = Vocabulary.from_counts(Counter(words))
    model = train(vocabulary.encode(words), vocabulary, order, stream=stream, thresholds=thresholds)
    return model if threshold is None else NGramModel(model.words, prune(model.table, threshold))


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize(("thresholds", "threshold"), [((), None), ((0, 0, 1), None), ((), 1e-4)])
def test_equals_kenlm_on_the_same_file(tmp_path, order, thresholds, threshold):
    file = tmp_path / "model.arpa"
    write_arpa(model_of(order, thresholds, threshold), file)
    ours, theirs = read_arpa(file), kenlm.Model(str(file))
    for line in sentences(200, 1, words=33):
        scored = theirs.full_scores(" ".join(line))
        wanted = [(log_prob, length, unknown) for log_prob, length, unknown in scored]
        ids = ours.encode([*line, "<eos>"])
        log_prob, length = ours.score(ids)
        np.testing.assert_allclose(log_prob / LN10, [one[0] for one in wanted], atol=1e-4)
        assert length.tolist() == [one[1] for one in wanted]
        assert (ids == ours.unk).tolist() == [one[2] for one in wanted]


def test_kenlm_reads_a_model_of_a_running_stream(tmp_path):
    file = tmp_path / "model.arpa"
    write_arpa(model_of(3, stream=True), file)
    ours, theirs = read_arpa(file), kenlm.Model(str(file))
    words = [word for line in sentences(50, 0) for word in (*line, "<eos>")]
    scored = [one[0] for one in theirs.full_scores(" ".join(["<eos>", *words]), bos=False, eos=False)]
    np.testing.assert_allclose(ours.score(ours.encode(words))[0] / LN10, scored[1:], atol=1e-4)
