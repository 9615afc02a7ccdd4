"""Sampling: what may be drawn, how often, and what is kept between symbols."""

from itertools import islice

import pytest
import torch

from elman.config.inference import Sampling
from elman.decoding.sampling import among, draw, generate, read
from elman.errors import Diverged, UserError
from elman.network.state import leaves
from support import networks

P = torch.tensor([0.05, 0.4, 0.15, 0.3, 0.1])


def shares(sampling, draws=20_000, p=P):
    """How often each symbol is drawn."""
    symbols = draw(p.log().expand(draws, -1), sampling, torch.Generator().manual_seed(0))
    return torch.bincount(symbols, minlength=len(p)) / draws


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(), P),
        (Sampling(temperature=0.5), P**2),
        (Sampling(temperature=2.0), P**0.5),
        (Sampling(top_k=2), P * (P > 0.2)),
        (Sampling(top_k=99), P),
        (Sampling(top_p=0.69), P * (P > 0.2)),
        (Sampling(top_p=0.71), P * (P > 0.11)),
        (Sampling(top_p=0.01), P * (P > 0.35)),
        (Sampling(top_p=1e-300), P * (P > 0.35)),
        (Sampling(top_p=1.0), P),
        (Sampling(forbidden=(1, 4)), P * torch.tensor([1, 0, 1, 1, 0])),
        (Sampling(forbidden=(1,), top_k=1), P * torch.tensor([0, 0, 0, 1, 0])),
        (Sampling(forbidden=(1,), top_p=0.49), P * torch.tensor([0, 0, 0, 1, 0])),
        (Sampling(temperature=0.5, top_k=3, forbidden=(3,)), P**2 * torch.tensor([0, 1, 1, 0, 1])),
    ],
)
def test_symbols_are_drawn_in_their_share(sampling, expected):
    expected = expected / expected.sum()
    drawn = shares(sampling)
    assert torch.equal(drawn > 0, expected > 0)
    torch.testing.assert_close(drawn, expected, atol=0.015, rtol=0)


def test_at_the_greatest_temperature_all_symbols_that_are_allowed_are_equal():
    drawn = shares(Sampling(temperature=1e6, forbidden=(0,)))
    torch.testing.assert_close(drawn, torch.tensor([0, 0.25, 0.25, 0.25, 0.25]), atol=0.015, rtol=0)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_of_equal_symbols_no_more_are_drawn_from(number):
    drawn = shares(Sampling(top_k=number), p=torch.tensor([0.2, 0.3, 0.3, 0.2]))
    assert (drawn > 0).sum() == number


@pytest.mark.parametrize(("forbidden", "best"), [((), 1), ((1,), 3)])
def test_temperature_zero_is_the_most_probable_symbol(forbidden, best):
    assert shares(Sampling(temperature=0.0, forbidden=forbidden), draws=50)[best] == 1
    assert shares(Sampling(temperature=1e-3, forbidden=forbidden), draws=50)[best] == 1


def test_draw_is_row_by_row_and_leaves_its_argument():
    log_probs = torch.eye(5).mul(50).log_softmax(-1)
    before = log_probs.clone()
    assert draw(log_probs, Sampling(forbidden=(0,), top_k=2)).tolist()[1:] == [1, 2, 3, 4]
    assert torch.equal(log_probs, before)


@pytest.mark.parametrize(
    ("sampling", "option"),
    [
        (Sampling(temperature=-1.0), "--temperature"),
        (Sampling(temperature=float("nan")), "--temperature"),
        (Sampling(temperature=1e-7), "--temperature"),
        (Sampling(temperature=1e39), "--temperature"),
        (Sampling(top_k=0), "--top-k"),
        (Sampling(top_p=0.0), "--top-p"),
        (Sampling(top_p=1.5), "--top-p"),
    ],
)
def test_sampling_options_out_of_range_are_refused(sampling, option):
    with pytest.raises(UserError, match=f"{option} is .* must be"):
        sampling.check()


@pytest.fixture(params=["single", "doc"])
def model(request):
    return networks.model(request.param).eval()


def symbols(model, number, seed, sampling=Sampling(), prompt=(0, 3)):  # noqa: B008
    generator = torch.Generator().manual_seed(seed)
    return list(islice(generate(model, prompt, model.begin(1), sampling, generator), number))


def test_a_seed_reproduces_a_text(model):
    one, again, other = ([symbol for symbol, _ in symbols(model, 40, seed)] for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_a_text_is_what_the_model_says_of_its_beginning(model):
    """Greedy symbols are the argmax of the model read from the start, every time."""
    drawn = [symbol for symbol, _ in symbols(model, 12, 0, Sampling(temperature=0.0))]
    text = torch.tensor([0, 3, *drawn]).unsqueeze(1)
    log_probs, _ = model.log_probs(text[:-1], model.begin(1))
    assert log_probs[1:, 0].argmax(-1).tolist() == drawn


@pytest.mark.slow
def test_memory_does_not_grow(model):
    """The state after a thousand symbols has the size of the state after one, and no gradient history."""
    sizes = {tuple(leaf.shape for leaf in leaves(state)) for _, state in symbols(model, 1000, 0)}
    assert len(sizes) == 1
    (_, state), *_ = symbols(model, 1, 0)
    assert all(leaf.grad_fn is None for leaf in leaves(state))


def test_generation_goes_on_from_the_state_it_gave(model):
    """Each symbol comes with the state before it was read, so that a text can be continued after it."""
    drawn = symbols(model, 10, 0, Sampling(temperature=0.0))
    symbol, state = drawn[4]
    more = islice(generate(model, [symbol], state, Sampling(temperature=0.0)), 5)
    assert [later for later, _ in more] == [later for later, _ in drawn[5:]]


@pytest.mark.parametrize("number", [1, 2, 6])
def test_read_is_step_by_step(model, number):
    prompt = list(range(number))
    log_probs, state = read(model, prompt, model.begin(1))
    expected, expected_state = None, model.begin(1)
    for symbol in prompt:
        expected, expected_state = model.step(torch.tensor([symbol]), expected_state)
    torch.testing.assert_close(log_probs, expected)
    torch.testing.assert_close(list(leaves(state)), list(leaves(expected_state)))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_is_not_a_number_is_refused(temperature):
    with pytest.raises(Diverged, match="its training has diverged"):
        draw(torch.full((1, 5), torch.nan), Sampling(temperature=temperature))


def test_between_symbols_gradients_can_be_computed():
    """The mode in which symbols are drawn ends with each of them."""
    model = networks.model().eval()
    drawn = generate(model, [1], model.begin(1), Sampling())
    next(drawn)
    assert not torch.is_inference_mode_enabled()
    drawn.close()


def test_the_first_symbol_is_one_of_some():
    """In each row their probabilities keep their proportions, and the others have none."""
    found = among(torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]).log(), [0, 2]).exp()
    torch.testing.assert_close(found, torch.tensor([[0.25, 0, 0.75, 0], [2 / 3, 0, 1 / 3, 0]]))
