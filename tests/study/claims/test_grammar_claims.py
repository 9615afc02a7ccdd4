"""What the claims on grammar measure."""

import numpy as np
import pytest
import torch

from elman import config
from elman.config.text import GrammarOptions
from elman.data.grammar.exact import Oracle
from elman.data.grammar.reading import read_grammar
from elman.data.grammar.sample import wish_of
from elman.study.claims.grammar import divergence
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import text_runs


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("grammar")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMAN_CACHE", str(place / "cache"))
        grammar = GrammarOptions(sentences=300, valid=40, test=60, complex=0.5)
        raw = text_runs.recipe(epochs=1)
        data = config.TextData(grammar=grammar, evaluation=raw.data.evaluation)
        experiment = Experiment(
            config.Recipe(title="toy", data=data, model=raw.model, training=raw.training), place / "r"
        )
        experiment.train()
        yield TextRun(place / "r")


@pytest.mark.slow
def test_the_divergence_is_that_of_the_state_carried_through_the_text(run):
    """Found again word by word: the sum over next words of p log(p / q), the state never reset."""
    oracle = Oracle(read_grammar("elman-1991"), wish_of(run.data.grammar), run.vocabulary.words)
    state, read, parses, parts = run.begin(), run.first, oracle.begin(), []
    for token in run.corpus().split("test").tokens.tolist():
        with torch.inference_mode():
            log_probs, state = run.model.log_probs(torch.tensor([[read]]), state)
        p, q = oracle.next_words(parses), log_probs[0, 0].exp().double().numpy()
        parts.append(sum(p[word] * np.log(p[word] / q[word]) for word in np.flatnonzero(p)))
        ended = token == run.vocabulary.eos
        parses = oracle.begin() if ended else oracle.read(parses, run.vocabulary.words[token])
        read = token
    assert divergence(run) == pytest.approx(np.mean(parts), rel=1e-4)
    assert divergence(run) > 0.1
