"""Words by their spelling: the paper's equations, any string, nothing changed by what stands beside a word."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elman import config
from elman.errors import UserError
from elman.learning.optimisers import Optimiser
from elman.network.build import build_model
from elman.network.encoders.characters import Alphabet
from elman.network.fast import policy
from elman.network.fast.precision import products_in
from reference import spelling
from support import networks
from support.pairwise import every_value

WORDS = ("the", "<eos>", "a", "<unk>", "internationalisation", "unk", "eos", "cat", "naïve", "日本", "act", "cats", "o")
WIDTHS, FILTERS = (1, 2, 5), (3, 4, 6)


def char_model(highways=2, output=None, words=WORDS, **options):
    recipe = config.Model(
        encoder=config.Characters(size=3, widths=WIDTHS, filters=FILTERS, highways=highways, **options),
        core=config.Stack(sizes=(5, 4)),
        output=config.Output() if output is None else output,
    )
    return networks.randomise(build_model(recipe, len(words), networks.COUNTS[: len(words)], words))


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return char_model().encoder


def expected(encoder, word):
    numbers = encoder.alphabet.spell(word)
    table = np.concatenate([encoder.weight.detach().numpy(), np.zeros((1, 3))])
    filters = [weight.detach().numpy() for weight in encoder.filters]
    y = spelling.filtered(table[numbers].T, filters, encoder.bias.detach().numpy(), WIDTHS)
    for layer in encoder.highways:
        y = spelling.highway(y, layer.weight.detach().numpy(), layer.bias.detach().numpy())
    return y


@pytest.mark.parametrize("word", [*WORDS, "", "dog", "ほ", "tac", "internationalisations"])
def test_the_character_encoder_is_the_equations_of_the_paper(encoder, word):
    (found,) = encoder.encode_words([word]).detach().numpy()
    np.testing.assert_allclose(found, expected(encoder, word), atol=1e-12)


@pytest.mark.parametrize("word", [*WORDS, "", "internationalisations"])
def test_with_padding_filters_read_blanks_behind_the_word(word):
    """Zero vectors for all characters up to the longest word, as in the published code, and far beyond it."""
    torch.manual_seed(0)
    encoder = char_model(highways=1, padding=True).encoder
    table = np.concatenate([encoder.weight.detach().numpy(), np.zeros((1, 3))])
    numbers = [*encoder.alphabet.spell(word), *[encoder.alphabet.nothing] * 40]
    filters = [weight.detach().numpy() for weight in encoder.filters]
    y = spelling.filtered(table[numbers].T, filters, encoder.bias.detach().numpy(), WIDTHS)
    y = spelling.highway(y, *(weight.detach().numpy() for weight in encoder.highways[0].parameters()))
    others = encoder.encode_words(["a", word, "internationalisation"])
    np.testing.assert_allclose(others[1].detach().numpy(), y, atol=1e-12)
    assert len(word) > 12 or (np.abs(y - expected(encoder, word)) > 1e-3).any()


def test_symbols_are_words_with_and_without_gradients(encoder):
    x = torch.tensor([[4, 0, 4], [1, 3, 12]])
    one_by_one = torch.stack([encoder.encode_words([WORDS[i]])[0] for i in x.flatten()]).view(2, 3, -1)
    with torch.no_grad():
        kept = encoder(x)
    torch.testing.assert_close(encoder(x), one_by_one)
    torch.testing.assert_close(kept, one_by_one)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.text(max_size=12), st.lists(st.text(max_size=40), max_size=5))
def test_what_stands_beside_a_word_changes_nothing(word, others):
    torch.manual_seed(0)
    encoder = char_model().encoder
    alone = encoder.encode_words([word])[0]
    for place in range(len(others) + 1):
        beside = encoder.encode_words([*others[:place], word, *others[place:]])[place]
        torch.testing.assert_close(beside, alone, rtol=0, atol=1e-12)


def test_single_precision_keeps_to_a_millionth():
    torch.manual_seed(0)
    encoder = char_model().encoder.float()
    alone = encoder.encode_words(["cat"])[0]
    torch.testing.assert_close(encoder.encode_words(["cat", *WORDS])[0], alone, rtol=0, atol=1e-6)


def test_special_symbols_are_not_spelled_like_words(encoder):
    unk, word, eos, other = encoder.encode_words(["<unk>", "unk", "<eos>", "eos"])
    assert not torch.allclose(unk, word)
    assert not torch.allclose(eos, other)
    alphabet = Alphabet(["<unk>", "a<"])
    assert "<" in alphabet
    assert "u" not in alphabet
    assert len(alphabet.spell("<unk>")) == 3


def test_order_matters_and_unseen_characters_are_nothing(encoder):
    cat, act, one, other = encoder.encode_words(["cat", "act", "caq", "caz"])
    assert not torch.allclose(cat, act)
    torch.testing.assert_close(one, other)


def test_more_words_are_known_with_the_same_parameters():
    torch.manual_seed(0)
    model = char_model().eval()
    wider = model.knowing(["dog", "cat"])
    assert [id(p) for p in wider.parameters()] == [id(p) for p in model.parameters()]
    assert not wider.training
    x = torch.tensor([[len(WORDS), len(WORDS) + 1, 7]])
    for reading in (torch.inference_mode, torch.enable_grad):
        with reading():
            dog, cat, known = wider.encoder(x)[0]
        torch.testing.assert_close(cat, known)
        torch.testing.assert_close(dog, model.encoder.encode_words(["dog"])[0])


def test_kept_vectors_follow_the_parameters():
    torch.manual_seed(0)
    model = char_model()
    x, encoder = torch.tensor([[0, 4]]), model.encoder
    wider = encoder.knowing(["dog"])

    def fresh():
        return encoder.encode_words([WORDS[0], WORDS[4]])

    def check():
        with torch.inference_mode():
            torch.testing.assert_close(encoder(x)[0], fresh())
            torch.testing.assert_close(wider(x)[0], fresh())

    check()
    with torch.no_grad():
        encoder.bias.add_(0.5)
    check()
    encoder.weight.data = encoder.weight.data * 2
    check()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.encoder.bias.zero_()
        assert not torch.allclose(twin.encoder(x), encoder(x))
    check()


def test_the_vocabulary_is_computed_once(encoder, monkeypatch):
    calls = []
    plain = type(encoder)._vectors
    monkeypatch.setattr(
        type(encoder), "_vectors", lambda self, words, *rest, **named: calls.append(len(words)) or plain(
            self, words, *rest, **named
        )
    )  # fmt: skip
    x = torch.tensor([[0, 4], [4, 4]])
    with torch.inference_mode():
        encoder(x)
        encoder(x)
        encoder.knowing(["dog"])(x)
    assert calls == [len(WORDS), 1]
    encoder(x)
    assert calls[2:] == [2]


@pytest.mark.slow
@pytest.mark.parametrize("words", [WORDS, ("aaaaaa", "<eos>", "ooooook", "tattattat", "<unk>", *WORDS)])
def test_gradients_are_those_of_finite_differences(words):
    """Also where a word finds the same maximum several times."""
    torch.manual_seed(0)
    encoder = char_model(words=words).encoder
    x = torch.tensor([[0, 4, 12], [2, 3, 0]])
    chosen = [encoder.weight, encoder.filters[1], encoder.bias, encoder.highways[0].weight, encoder.highways[1].bias]

    def read(*tensors):
        named = dict(encoder.named_parameters())
        names = [name for tensor in chosen for name, parameter in named.items() if parameter is tensor]
        return torch.func.functional_call(encoder, dict(zip(names, tensors, strict=True)), (x,))

    assert torch.autograd.gradcheck(read, tuple(chosen), fast_mode=True)


CHOICES = {
    "flat": config.Flat(),
    "tree": config.Tree(),
    "adaptive": config.Adaptive(cutoffs=(4, 9), div_value=2.0),
    "rare-class": config.RareClass(threshold=3),
    "monotone": config.Monotone(pieces=9, range=3.0),
    "mixtape": config.Mixtape(gate_size=3, frequent=5),
}


@every_value(contexts=[config.Single(), config.Mixture(heads={0: 1, 1: 2, 2: 1}, size=4)], choice=CHOICES)
def test_every_output_reads_spelling(choice, contexts):
    torch.manual_seed(0)
    model = char_model(output=config.Output(contexts=contexts, choice=CHOICES[choice])).eval()
    x = torch.tensor([[0, 4], [3, 1]])
    log_probs, _ = model.log_probs(x, model.begin(2))
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(2, 2, dtype=torch.float64))
    log_prob, _ = model.knowing(["dog"]).log_prob(torch.full_like(x, len(WORDS)), x, model.begin(2))
    log_prob.sum().backward()
    assert all(p.grad is not None for p in model.encoder.parameters())


def test_gates_begin_at_minus_two_and_dropout_is_on_the_vectors():
    model = char_model(dropout=0.5)
    model.initialise(config.Initialisation())
    gate = model.encoder.highways[0].bias.chunk(2)[1]
    with torch.no_grad():
        gate_begins = type(model.encoder.highways[0])(4).bias
        dropped = model.encoder.train()(torch.zeros(50, 2, dtype=torch.long))
    assert gate_begins.tolist() == [0.0] * 4 + [-2.0] * 4
    assert gate.shape == (13,)
    assert (dropped == 0).any()
    assert (dropped == 0).all(dim=0).any(), "one mask for all steps"


def test_what_does_not_fit_is_said():
    with pytest.raises(UserError, match=r"filters has 1 numbers and model\.encoder\.widths 2"):
        build_model(
            config.Model(encoder=config.Characters(widths=(1, 2), filters=(3,)), core=config.Stack(sizes=(4,))), 7
        )
    with pytest.raises(UserError, match=r"model\.output\.choice\.tied .* vector per word"):
        char_model(output=config.Output(choice=config.Flat(tied=True)))


def test_kept_vectors_follow_a_step_of_an_optimiser():
    """Validation while training reads the vectors of the present parameters, not of those of the first validation."""
    torch.manual_seed(0)
    encoder, x = char_model().encoder, torch.tensor([[0, 4]])
    optimiser = Optimiser(config.Adam(lr=0.1), list(encoder.parameters()))
    with torch.inference_mode():
        before = encoder(x)
    encoder(x).square().sum().backward()
    optimiser.step()
    with torch.inference_mode():
        assert not torch.allclose(encoder(x), before)
        torch.testing.assert_close(encoder(x)[0], encoder.encode_words([WORDS[0], WORDS[4]]))


def test_kept_vectors_are_those_of_the_precision(encoder, monkeypatch):
    monkeypatch.setattr(policy, "LEAST_MULTIPLY_ADDS", 0)
    monkeypatch.setattr(policy, "LEAST_ROWS", 1)
    encoder.float()
    symbols = torch.arange(len(WORDS)).unsqueeze(1)
    with torch.no_grad():
        exact = encoder(symbols)
        with products_in("bf16"):
            rounded = encoder(symbols)
        assert not torch.equal(rounded, exact)
        assert torch.equal(encoder(symbols), exact)


def test_a_network_of_characters_begins_as_the_small_one_of_kim():
    """Kim, Jernite, Sontag & Rush 2016, table 2: 25 filters for each symbol of a width, one highway."""
    small = config.Characters()
    assert (small.size, small.highways) == (15, 1)
    assert (small.widths, small.filters) == (tuple(range(1, 7)), tuple(25 * width for width in range(1, 7)))
