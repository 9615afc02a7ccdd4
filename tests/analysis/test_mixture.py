"""What the components of a mixture say adds up to what the model says."""

import numpy as np
import pytest
import torch

from elman.analysis.mixture import effective_number, read_mixture
from elman.data.batches import Batch
from elman.data.windows import EvaluationWindows
from elman.errors import UserError
from elman.evaluation.perplexity import token_log_probs
from elman.network.output.contexts import Contexts
from elman.objective.criteria import Seen
from elman.objective.penalties import Balance
from support import networks

TOKENS = np.random.default_rng(0).integers(0, 7, 61)


@pytest.fixture(params=[("mos", "softmax"), ("doc", "sigsoftmax")], ids=["mos", "doc"])
def model(request):
    return networks.model(*request.param).eval()


def test_the_mixture_of_what_was_read_is_the_model(model):
    found = read_mixture(model, TOKENS, 0)
    np.testing.assert_allclose(found.log_prob, token_log_probs(model, EvaluationWindows(TOKENS, 0)), rtol=1e-5)
    np.testing.assert_allclose(found.prior.sum(-1), 1.0)
    np.testing.assert_allclose(found.responsibility.sum(-1), 1.0)
    np.testing.assert_allclose(sum(found.by_level.values()), 1.0)


def test_mixture_figures_do_not_depend_on_the_windows(model, monkeypatch):
    whole = read_mixture(model, TOKENS, 0)
    monkeypatch.setattr("elman.analysis.mixture._ELEMENTS", 1)
    for one, other in zip(whole[1:], read_mixture(model, TOKENS, 0)[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)


def test_components_are_named_by_layer():
    found = read_mixture(networks.model("doc").eval(), TOKENS[:3], 0)
    assert found.levels == [0, 1, 1, 2, 2]
    assert found.names == ["layer 0.1", "layer 1.1", "layer 1.2", "layer 2.1", "layer 2.2"]
    assert found.prior.shape == (3, 5)
    assert found.top.shape == (3, 5, 5)
    assert (np.diff(found.top_prob, axis=-1) <= 0).all()
    assert (found.entropy <= np.log2(7) + 1e-9).all()


def test_variation_is_that_of_the_balance_penalty(model):
    found = read_mixture(model, TOKENS, 0)
    contexts = Contexts(torch.zeros(1), torch.from_numpy(np.log(found.prior)).unsqueeze(1))
    symbols = torch.zeros(len(found.prior), 1, dtype=torch.long)
    seen = Seen(model, None, contexts, Batch(symbols, symbols))
    assert found.variation**2 == pytest.approx(float(Balance(weight=1.0, form="minibatch")(seen)))


def test_effective_number_lies_between_one_and_all():
    assert effective_number(np.array([[1.0, 0.0], [0.5, 0.5]])).tolist() == pytest.approx([1.0, 2.0])


def test_no_mixture_is_one_clear_line():
    with pytest.raises(UserError, match="not a mixture"):
        read_mixture(networks.model().eval(), TOKENS, 0)
