"""Models of transformers read what sentences share once, in trees, where that gives the numbers of each alone."""

import numpy as np
import pytest
import torch

from elman.tasks.text.logits import size_of, trees_of
from elman.tasks.text.model import open_foreign

transformers = pytest.importorskip("transformers")

LINES = [
    "the keys to the cabinet are here",
    "the keys to the cabinet is here",
    "the key to the cabinets is here",
    "the key to the cabinets are here",
    "the keys to the cabinet are here",
    "the keys to the cabinet",
    "the",
    "a cat sleeps",
    "the keys to the cabinet are here " * 8,
]
CONTEXT = 40
"""Symbols read at once."""
SIZES = {
    "vocab_size": 300,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "initializer_range": 0.3,
}
ROTARY = {**SIZES, "intermediate_size": 32, "max_position_embeddings": CONTEXT}
TREES = {
    "GPT2": {**SIZES, "n_positions": CONTEXT},
    "Llama": ROTARY,
    "GPTNeoX": ROTARY,
    "Mistral": {**ROTARY, "num_key_value_heads": 1, "sliding_window": None},
}
ALONE = {
    "Bloom": SIZES,
    "Mamba": {**SIZES, "state_size": 4},
    "Mistral": {**ROTARY, "num_key_value_heads": 1, "sliding_window": 4},
    "GPTNeo": {
        **SIZES,
        "num_layers": 2,
        "num_heads": 2,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 4,
    },
}


@pytest.fixture(scope="module")
def tokeniser():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=alphabet)
    pieces.train_from_iterator(LINES, trainer)
    marks = dict.fromkeys(("bos_token", "eos_token", "pad_token"), "<|end|>")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, model_max_length=CONTEXT, **marks)


def _opened(folder, kind, sizes, tokeniser):
    torch.manual_seed(0)
    marks = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0)
    config = getattr(transformers, f"{kind}Config")(**sizes, **marks)
    transformers.AutoModelForCausalLM.from_config(config).eval().save_pretrained(folder)
    tokeniser.save_pretrained(folder)
    return open_foreign(folder)


def _read(model, sentences):
    """What a model finds for sentences, with and without ranks, and how many symbols its network reads for it."""
    counts = list[int]()
    first = model.model.get_input_embeddings()
    list(model.score(LINES[:2]))
    hook = first.register_forward_pre_hook(lambda _, given: counts.append(given[0].numel()))
    read = model.as_read(sentences)._replace(items=[(sentence, sentence.ids) for sentence in sentences])
    found = [one for _, one in model.predict_text(read)], [one for _, one in model.score_text(read)]
    hook.remove()
    return *found, sum(counts)


def _check(model, sentences, predicted, scored):
    """Compare the figures with those of every symbol by itself, in double precision, in windows of half a context."""
    network = model.model.double()
    for sentence, found, score in zip(sentences, predicted, scored, strict=True):
        ids, expected = [0, *map(int, sentence.ids)], []
        for at in range(1, len(ids)):
            begin = max(0, -(-(at + 1 - CONTEXT) // (CONTEXT // 2)) * (CONTEXT // 2))
            with torch.no_grad():
                after = network(torch.tensor([ids[begin:at]])).logits[0, -1].log_softmax(-1)
            own = after[ids[at]]
            expected.append(
                [float(one) for one in (own, (after > own).sum() + 1, torch.special.entr(after.exp()).sum())]
            )
        log_prob, rank, entropy = np.array(expected).T
        assert score == pytest.approx(log_prob, abs=1e-5)
        assert found.log_prob == pytest.approx(log_prob, abs=1e-5)
        assert found.rank.tolist() == rank.tolist()
        assert found.entropy[:-1] == pytest.approx(entropy, abs=1e-4)


@pytest.mark.parametrize("kind", TREES)
def test_what_sentences_share_is_read_once_and_changes_no_figure(kind, tokeniser, tmp_path):
    model = _opened(tmp_path, kind, TREES[kind], tokeniser)
    sentences = list(model.reader().sentences(LINES))
    *found, together = _read(model, sentences)
    *short, long = (_read(model, [sentence])[-1] for sentence in sentences)
    assert together - long < 0.6 * sum(short)
    _check(model, sentences, *found)


@pytest.mark.parametrize("kind", ALONE)
def test_a_model_that_reads_no_trees_reads_each_sentence_alone(kind, tokeniser, tmp_path):
    model = _opened(tmp_path, kind, ALONE[kind], tokeniser)
    sentences = list(model.reader().sentences(LINES))
    _check(model, sentences, *_read(model, sentences)[:2])


@pytest.mark.parametrize("lost", ["attention_mask", "position_ids"])
def test_a_model_that_refuses_masks_or_places_is_noticed(lost, tokeniser, tmp_path, monkeypatch):
    """One that leaves them aside in silence, and one that raises an error."""
    model = _opened(tmp_path, "GPT2", TREES["GPT2"], tokeniser)
    body = model.model.base_model
    forward = body.forward

    def without(input_ids, **given):
        return forward(input_ids=input_ids, **{name: value for name, value in given.items() if name != lost})

    def only(input_ids, **given):
        assert given.get(lost) is None
        return forward(input_ids=input_ids, **given)

    sentences = list(model.reader().sentences(LINES))
    for refusing in (without, only):
        monkeypatch.setattr(body, "forward", refusing)
        model.network.__dict__.pop("_branches", None)
        *found, _ = _read(model, sentences)
        monkeypatch.setattr(body, "forward", forward)
        _check(model, sentences, *found)
        model.model.float()


def test_rows_that_begin_alike_share_places():
    rows = [np.array(row) for row in ([1, 2, 3], [1, 2, 4], [1, 2], [1, 2, 3], [5], [], [1, 2, 3, 6, 7, 8, 9])]
    trees = trees_of(rows, 5)
    assert sorted(number for tree in trees for number in tree) == list(range(7))
    assert [size_of(tree) for tree in trees] == [3, 7, 4]
    for tree in trees:
        symbols = {}
        for number, path in tree.items():
            before = ()
            for place, symbol in zip(path, rows[number].tolist(), strict=True):
                before = (*before, symbol)
                assert symbols.setdefault(place, before) == before
        assert len(set(symbols.values())) == len(symbols)
    assert [size_of(tree) for tree in trees_of(rows[:4], 0)] == [2, 3, 3, 3]
