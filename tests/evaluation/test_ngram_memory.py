import numpy as np
import pytest

from elman.errors import UserError
from elman.evaluation.ngram import kneser_ney, memory


def test_a_text_whose_n_grams_do_not_fit_is_refused(monkeypatch):
    words = np.arange(1000) % 7
    monkeypatch.setattr(memory, "available", lambda: memory.needed(1000, 3))
    kneser_ney.train(words, 7, order=3)
    with pytest.raises(UserError, match=r"up to 4 words of 1,000 tokens take up to 0.0 GB.*lower the order"):
        kneser_ney.train(words, 7, order=4)


def test_what_is_free_is_known_here_or_not_asked():
    free = memory.available()
    assert free is None or free > 1 << 20
    memory.require(1, 1)
