"""Vectors of words, whatever the output layer."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from elman.analysis.embedding import word2vec_text, word_vectors
from elman.errors import UserError
from support import networks


def run_of(choice):
    model = networks.choice_model(choice).eval()
    words = range(len(networks.COUNTS))
    return SimpleNamespace(model=model, path=Path("run"), device=model.device, vocabulary=words)


@pytest.mark.parametrize("choice", networks.CHOICES)
def test_every_encoder_has_vectors_and_a_matrix_is_needed_for_the_output(choice):
    run = run_of(choice)
    torch.testing.assert_close(word_vectors(run, "input"), run.model.encoder.weight.detach())
    if choice.startswith(("adaptive", "rare")):
        with pytest.raises(UserError, match="no single vector per word"):
            word_vectors(run, "output")
    else:
        assert len(word_vectors(run, "output")) == len(networks.COUNTS)


def test_vectors_are_written_as_word2vec_text():
    text = word2vec_text(["to", " ", "\u00e9"], torch.tensor([[1.0, 0.5], [2, 0], [0, 1e-9]]))
    assert text == "3 2\nto 1 0.5\n\\u0020 2 0\n\u00e9 0 1e-09\n"
