"""Models that elman did not train score texts as runs do: by transformers, by n-grams; nothing is fetched."""

import itertools
import json

import numpy as np
import pytest
import torch

import elman
from elman.analysis.reading_times import measure
from elman.cli import main
from elman.data.minimal_pairs import Pair
from elman.data.reading_times import Word
from elman.evaluation.word_ends import with_word_ends
from elman.tasks.text import logits
from elman.tasks.text.model import cut, open_foreign, unranked
from elman.tasks.text.suites import judge
from support.commands import complaint, output, table

transformers = pytest.importorskip("transformers")
LINES = [
    "The keys to the cabinet are on the table.",
    "The author near the pilots laughs.",
    "She knows the café and 日本語 well.",
    "Is it?",
]


@pytest.fixture(scope="module")
def gpt(tmp_path_factory):
    """A tiny causal model with a byte-level tokeniser."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=alphabet)
    pieces.train_from_iterator(LINES * 3, trainer)
    tokeniser = transformers.PreTrainedTokenizerFast(
        tokenizer_object=pieces, bos_token="<|end|>", eos_token="<|end|>", pad_token="<|end|>"
    )
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokeniser), n_positions=32, n_embd=16, n_layer=2, n_head=2, initializer_range=0.5,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return _saved(tmp_path_factory.mktemp("gpt"), transformers.GPT2LMHeadModel(config), tokeniser)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A tiny masked model with pieces of words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    pieces.normalizer, pieces.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces.train_from_iterator(LINES * 3, trainers.WordPieceTrainer(vocab_size=60, special_tokens=special))
    marks = [("[CLS]", 2), ("[SEP]", 3)]
    pieces.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    tokeniser = transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, **names)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(tokeniser), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip
    return _saved(tmp_path_factory.mktemp("bert"), transformers.BertForMaskedLM(config), tokeniser)


@pytest.fixture(scope="module")
def arpa(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ngram")
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in LINES * 3))
    text, out = str(folder / "text.txt"), str(folder / "m.arpa")
    assert main(["ngram", "train", text, "--tokenisation", "words", "--order", "2", "--out", out]) == 0
    return folder / "m.arpa"


def _saved(folder, model, tokeniser):
    model.eval().save_pretrained(folder)
    tokeniser.save_pretrained(folder)
    return folder


def _by_hand(folder, line):
    """Log-probabilities of a line after the beginning symbol, one at a time, in double precision."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).double().eval()
    tokeniser = transformers.AutoTokenizer.from_pretrained(folder)
    ids = [tokeniser.bos_token_id, *tokeniser(line, add_special_tokens=False)["input_ids"]]
    with torch.no_grad():
        found = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return found, ids


def test_a_causal_model_gives_every_token_the_probability_of_the_model_alone(gpt):
    for line, (tokens, log_probs) in zip(LINES, elman.load(f"hf://{gpt}").score(LINES), strict=True):
        found, ids = _by_hand(gpt, line)
        assert log_probs == pytest.approx([float(found[at, one]) for at, one in enumerate(ids[1:])], abs=1e-4)
        assert "".join(tokens) == line


@pytest.mark.parametrize("head", ["linear", "with a bias", "of another kind", "none"])
def test_logits_in_blocks_of_the_vocabulary_give_the_log_probabilities_of_all_at_once(head, monkeypatch):
    monkeypatch.setattr(logits, "BLOCK", 7)
    torch.manual_seed(0)
    form = torch.nn.Linear(5, 30, bias=head == "with a bias")
    states, following = 20 * torch.randn(60, 5), torch.arange(60).unsqueeze(1) % 30
    with torch.no_grad():
        whole = form(states)
        if head == "none":
            whole[:, 7:14] = -torch.inf
            blocks = logits.blocks_of(whole.clone(), None)
        else:
            blocks = logits.blocks_of(states, torch.nn.Sequential(form) if head == "of another kind" else form)
        found = logits.log_probs_of(blocks, torch.arange(60), following.squeeze(-1))
    expected = whole.double().log_softmax(-1).gather(-1, following).squeeze(-1)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_words_sum_to_the_sentence_for_every_model(capsys, gpt, bert, arpa, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in LINES))
    for model in (gpt, bert, arpa):
        words = table(output(capsys, "score", model, tmp_path / "text.txt", "--by", "word"))
        sentences = table(output(capsys, "score", model, tmp_path / "text.txt", "--by", "sentence"))
        for sentence in sentences:
            own = [row for row in words if row["sentence"] == sentence["sentence"]]
            assert sum(float(row["surprisal"]) for row in own) == pytest.approx(float(sentence["surprisal"]), abs=1e-3)
            assert [row["word"] for row in own if row["word"] != "<eos>"] == sentence["text"].split()


def test_blanks_before_move_the_ends_of_words_as_minicons_moves_them(gpt):
    """Within a sentence: + log p(blank | word) at the end of a word, and - the same at the beginning of the next."""
    model = open_foreign(gpt)
    line = LINES[0]
    ((sentence, found),) = model.predict_text(model.as_read([model.sentence(line, 1)]))
    moved = with_word_ends(found.log_prob, found.space, sentence, model.tokeniser)
    by_hand, ids = _by_hand(gpt, line)
    own = np.array([float(by_hand[at, one]) for at, one in enumerate(ids[1:])])
    space = by_hand[:, list(model.spaces)].logsumexp(-1).numpy()
    for at, piece in enumerate(sentence.pieces):
        if at and piece.startswith(" "):
            own[at - 1] += space[at]
            own[at] -= space[at]
    assert moved == pytest.approx(own, abs=1e-4)
    assert moved.sum() == pytest.approx(found.log_prob.sum(), abs=1e-4)
    assert not np.allclose(moved, found.log_prob, atol=1e-3)


def test_ranks_and_entropies_are_those_of_the_whole_distribution(gpt):
    model = open_foreign(gpt)
    ((_, found),) = model.predict_text(model.as_read([model.sentence(LINES[1], 1)]))
    by_hand, ids = _by_hand(gpt, LINES[1])
    assert found.entropy == pytest.approx(torch.special.entr(by_hand.exp()).sum(-1).numpy(), abs=1e-4)
    ranks = [int((by_hand[at] > by_hand[at, one]).sum()) + 1 for at, one in enumerate(ids[1:])]
    assert found.rank.tolist() == ranks


def test_a_text_beyond_the_context_is_read_in_windows_of_half_a_context(gpt):
    line = " ".join(LINES * 3)
    tokeniser = transformers.AutoTokenizer.from_pretrained(gpt)
    model = transformers.AutoModelForCausalLM.from_pretrained(gpt).eval()
    ids = [tokeniser.bos_token_id, *tokeniser(line, add_special_tokens=False)["input_ids"]]
    assert len(ids) > 3 * 32
    expected, done = [], 0
    for begin in itertools.count(0, 16):
        window = torch.tensor([ids[begin : begin + 32]])
        with torch.no_grad():
            found = model(window).logits[0].log_softmax(-1)
        expected += [float(found[at - begin - 1, ids[at]]) for at in range(done + 1, begin + window.shape[1])]
        done = begin + window.shape[1] - 1
        if begin + 32 >= len(ids):
            break
    ((_, log_probs),) = elman.load(gpt).score([line])
    assert log_probs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("pll", ["within_word_l2r", "original"])
def test_a_masked_model_gives_pseudo_log_likelihoods(bert, pll):
    """A transcription of the rule of minicons, which masks a token, and with `within_word_l2r` the rest of its word."""
    tokeniser = transformers.AutoTokenizer.from_pretrained(bert)
    network = transformers.AutoModelForMaskedLM.from_pretrained(bert).double().eval()
    model = open_foreign(bert)
    model.pll = pll
    for line, (_, log_probs) in zip(LINES, model.score(LINES), strict=True):
        read = tokeniser(line)
        words, expected = read.word_ids(), []
        for at, one in enumerate(read["input_ids"]):
            if words[at] is None:
                continue
            ids = list(read["input_ids"])
            for later in range(at, len(ids)):
                if later == at or (pll != "original" and words[later] == words[at]):
                    ids[later] = tokeniser.mask_token_id
            with torch.no_grad():
                expected.append(float(network(torch.tensor([ids])).logits[0, at].log_softmax(-1)[one]))
        assert log_probs == pytest.approx(expected, abs=1e-5)


def test_a_batch_changes_no_probability(gpt):
    model = open_foreign(gpt)
    together = [found for _, found in model.score(LINES)]
    alone = [next(model.score([line]))[1] for line in LINES]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_pairs_that_end_with_a_word_count_its_end(gpt):
    model = open_foreign(gpt)
    pair = Pair("The author laughs", "The author laugh", "agreement", whole=False)
    judged = judge(model, [pair])
    for text, score in zip((pair.good, pair.bad), judged.log_probs[0], strict=True):
        by_hand, ids = _by_hand(gpt, text)
        total = sum(float(by_hand[at, one]) for at, one in enumerate(ids[1:]))
        assert score == pytest.approx(total + float(by_hand[-1, list(model.spaces)].logsumexp(-1)), abs=1e-4)


def test_a_model_of_transformers_and_ngrams_are_compared_on_sentences_and_pairs(capsys, gpt, arpa, tmp_path):
    items = tmp_path / "items.tsv"
    items.write_text(
        "item\tcondition\ttext\n" + "".join(f"{n // 2}\t{'ab'[n % 2]}\t{s}\n" for n, s in enumerate(LINES))
    )
    assert main(["compare", str(gpt), str(arpa), "--stimuli", str(items), "--json"]) == 0
    found = capsys.readouterr()
    assert "predict the end of a sentence, so that it is not compared" in found.err
    facts = json.loads(found.out)
    assert facts["read_differently"] == 0
    assert {row["condition"] for row in facts["conditions"]} == {"a", "b", "all"}
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("good\tbad\nThe author laughs.\tThe author laugh.\nThe keys are\tThe keys is\n")
    assert json.loads(output(capsys, "compare", gpt, arpa, "--pairs", pairs, "--json"))["phenomena"]
    assert len(json.loads(output(capsys, "minimal-pairs", gpt, arpa, "--pairs", pairs, "--json"))) == 2


@pytest.mark.parametrize("stride", [None, 5, 31])
def test_the_perplexity_of_a_text_is_of_windows_that_advance_by_the_stride(capsys, gpt, tmp_path, stride):
    """A transcription: of each window those tokens count that no window before it has predicted."""
    text = "".join(f"{line}\n" for line in LINES * 3)
    (tmp_path / "text.txt").write_text(text)
    tokeniser = transformers.AutoTokenizer.from_pretrained(gpt)
    model = transformers.AutoModelForCausalLM.from_pretrained(gpt).double().eval()
    ids, nll, done, begin = [tokeniser.bos_token_id, *tokeniser(text)["input_ids"]], 0.0, 1, 0
    while done < len(ids):
        window = ids[begin : begin + 32]
        with torch.no_grad():
            found = model(torch.tensor([window])).logits[0].log_softmax(-1)
        nll -= sum(float(found[at - begin - 1, ids[at]]) for at in range(done, begin + len(window)))
        done, begin = begin + len(window), begin + (stride or 16)
    more = [] if stride is None else ["--stride", stride]
    facts = json.loads(
        output(capsys, "evaluate", gpt, "--data", tmp_path / "text.txt", "--split", "all", "--json", *more)
    )
    assert facts["nll"] == pytest.approx(nll / (len(ids) - 1), abs=1e-5)
    assert facts["context"] == f"windows of 32 tokens that advance by {stride or 16}"
    assert facts["tokens"] == len(ids) - 1
    assert (facts["characters"], facts["bytes"]) == (len(text), len(text.encode()))
    assert facts["words"] == len(text.split()) + 12


def test_the_perplexity_under_an_ngram_model_is_that_of_its_sentences(capsys, arpa, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{line}\n" for line in LINES))
    facts = json.loads(output(capsys, "evaluate", arpa, "--data", text, "--split", "all", "--json"))
    rows = table(output(capsys, "score", arpa, text, "--by", "sentence"))
    assert facts["nll"] * facts["tokens"] == pytest.approx(-sum(float(row["log_prob"]) for row in rows), abs=1e-4)
    assert facts["context"] == "sentences"


def test_states_and_vectors_are_those_of_the_model(capsys, gpt, bert, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in LINES))
    for folder, kind in ((gpt, transformers.AutoModelForCausalLM), (bert, transformers.AutoModelForMaskedLM)):
        out = tmp_path / "states.npz"
        assert main(["embed", str(folder), str(tmp_path / "text.txt"), "--out", str(out), "--layers", "all"]) == 0
        found = np.load(out)
        tokeniser = transformers.AutoTokenizer.from_pretrained(folder)
        model = kind.from_pretrained(folder).eval()
        for number, line in enumerate(LINES, start=1):
            ids = tokeniser(line)["input_ids"]
            ids, own = ([0, *ids], slice(1, None)) if folder == gpt else (ids, slice(1, -1))
            with torch.no_grad():
                levels = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
            for layer, level in enumerate(levels):
                states = found[f"layer{layer}"][found["sentence"] == number]
                assert states == pytest.approx(level[0, own].numpy(), abs=1e-5)
        vectors = tmp_path / "vectors.txt"
        assert main(["embed", str(folder), "--vectors", "input", "--out", str(vectors)]) == 0
        assert vectors.read_text().startswith(f"{len(tokeniser)} 16\n")
        out.unlink()
        vectors.unlink()


def test_a_blank_that_is_a_token_of_its_own_begins_the_word_and_the_region_after_it(capsys, gpt, tmp_path):
    model, line = open_foreign(gpt), "She  knows | Жук ."
    text = line.replace(" | ", " ")
    sentence = model.sentence(text, 1)
    begins = [piece for piece, start in zip(sentence.pieces, sentence.starts, strict=True) if start]
    assert begins[0] == "She"
    assert begins[1:] == [" ", " ", " "]
    assert [word.text.strip() for word in sentence.words(model.tokeniser)] == ["She", "knows", "Жук", "."]
    (tmp_path / "items.txt").write_text(f"{line}\n")
    rows = table(output(capsys, "score", gpt, tmp_path / "items.txt", "--regions", "|", "--by", "region"))
    ((_, log_probs),) = model.score([text])
    second = [at for at, start in enumerate(sentence.starts) if start][2]
    for row, part in zip(rows, (log_probs[:second], log_probs[second:]), strict=True):
        assert float(row["surprisal"]) == pytest.approx(-part.sum() / np.log(2), abs=1e-3)


def test_a_blank_at_the_end_of_a_token_begins_the_next_word(gpt, monkeypatch):
    model, pieces = open_foreign(gpt), ["The ", "key", "s ", "a", " re", ".", "\n", "x"]
    monkeypatch.setattr(model, "_tokens", lambda text: (pieces, np.arange(len(pieces))))
    sentence = model.sentence("".join(pieces), 1)
    assert sentence.starts == [True, True, False, True, True, False, True, False]


def test_what_has_no_meaning_for_a_model_is_one_line(capsys, gpt, bert, arpa, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The keys are\n")
    assert "--data" in complaint(capsys, "evaluate", gpt)
    assert "no perplexity of a text" in complaint(capsys, "evaluate", bert, "--data", text, "--split", "all")
    assert "an n-gram model" in complaint(capsys, "evaluate", arpa, "--data", text, "--stride", 3)
    assert "less than that" in complaint(capsys, "evaluate", gpt, "--data", text, "--split", "all", "--stride", 32)
    assert "--method" in complaint(capsys, "evaluate", gpt, "--data", text, "--method", "cache")
    assert "no states" in complaint(capsys, "embed", arpa, text, "--out", tmp_path / "e.npz")
    assert "--stride" in complaint(capsys, "score", arpa, text, "--stride", 3)
    assert "is a model of transformers" in complaint(capsys, "generate", gpt)
    assert "is an n-gram model" in complaint(capsys, "generate", arpa)


def test_all_models_are_opened_before_the_first_is_evaluated(capsys, monkeypatch, gpt, tmp_path):
    monkeypatch.setattr("elman.tasks.text.pretrained.Pretrained.evaluate", lambda *_: pytest.fail("evaluated"))
    (tmp_path / "text.txt").write_text("a\n")
    said = complaint(capsys, "evaluate", gpt, tmp_path / "nothere", "--data", tmp_path / "text.txt")
    assert "nothere is not a run folder" in said


def test_what_only_runs_can_do_is_refused_in_one_line(capsys, gpt, arpa, tmp_path):
    (tmp_path / "text.txt").write_text("The keys are\n")
    for model, option in ((gpt, "--adapt"), (arpa, "--adapt"), (gpt, "--document"), (gpt, "--pll=original")):
        assert option.split("=")[0] in complaint(capsys, "score", model, tmp_path / "text.txt", option)
    assert "--pairs or --stimuli" in complaint(capsys, "compare", gpt, arpa)


def test_words_of_reading_times_are_scored_with_their_marks(gpt, arpa):
    words = [
        Word("1", 0, at in (0, 4), word) for at, word in enumerate(["Strange,", "the", "dog's", "barked.", "Is", "it?"])
    ]
    model = open_foreign(gpt)
    for ends, whole in itertools.product((False, True), (False, True)):
        found = measure(model, words, "t", sentences=not whole, word_ends=ends, exclude=True)
        lines = ["Strange, the dog's barked. Is it?"] if whole else ["Strange, the dog's barked.", "Is it?"]
        scored = [log_probs for _, log_probs in model.score(lines)]
        assert not found.unknown.any()
        assert found.counts is None
        assert found.surprisal.sum() == pytest.approx(-sum(map(np.nansum, scored)) / np.log(2), rel=1e-4)
    found = measure(open_foreign(arpa), words, "t", sentences=True, word_ends=False, exclude=True)
    assert found.unknown.tolist() == [True, False, True, True, False, False]
    assert np.isnan(found.surprisal).tolist() == found.unknown.tolist()


def test_logits_that_are_more_than_those_of_the_last_layer(gpt, monkeypatch):
    """Some models scale them afterwards."""
    forward = transformers.GPT2LMHeadModel.forward

    def scaled(self, *arguments, **named):
        found = forward(self, *arguments, **named)
        found.logits = found.logits / 2
        return found

    monkeypatch.setattr(transformers.GPT2LMHeadModel, "forward", scaled)
    for line, (_, log_probs) in zip(LINES, elman.load(f"hf://{gpt}").score(LINES), strict=True):
        found, ids = _by_hand(gpt, line)
        assert log_probs == pytest.approx([float(found[at, one]) for at, one in enumerate(ids[1:])], abs=1e-4)


def test_the_beginning_of_a_sentence_has_no_end(arpa):
    reader = open_foreign(arpa).reader()
    whole, begun = (cut(reader, "The keys to the cabinet", ends=ends) for ends in (True, False))
    assert whole.pieces == [*begun.pieces, "<eos>"] == ["The", "keys", "to", "the", "cabinet", "<eos>"]
    assert whole.read == [*begun.read, "<eos>"]
    assert len(begun.ids) == len(begun.starts) == len(begun.unknown) == 5


def test_a_prediction_without_ranks_has_all_its_parts():
    found = unranked(np.zeros(3, np.float32))
    assert [len(part) for part in found] == [3, 3, 4, 4]
    assert not found.rank.any()
    assert np.isnan([*found.entropy, *found.space]).all()
