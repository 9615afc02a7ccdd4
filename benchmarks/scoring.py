"""Sentences that `elman` and minicons score with the same random GPT-2, per second of CPU time, turn by turn.

The texts come from `pydoc_data.topics`, or from files of minimal pairs. Needs minicons beside the extra `hf`:

    python benchmarks/scoring.py --threads 1 --repetitions 5
    python benchmarks/scoring.py --pairs blimp/*.jsonl
"""

import argparse
import math
import statistics
import tempfile
import time
from pydoc_data.topics import topics

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import elman
from elman.data.minimal_pairs import pairs_by_file

SIZES = {
    "tiny": (2_000, 2_000, 64, 2),
    "tiny, V = 50,257": (2_000, 50_257, 64, 2),
    "medium": (8_000, 8_000, 256, 4),
    "as GPT-2": (8_000, 50_257, 768, 12),
}
"""The pieces of the tokeniser, the vocabulary of the model, its width and its layers."""

BATCH = 32


def sentences(count: int) -> list[str]:
    """Lines of at least three words."""
    lines = [" ".join(line.split()) for text in topics.values() for line in text.splitlines()]
    return [line for line in lines if len(line.split()) > 2][:count]


def paired(files: list[str], count: int) -> list[str]:
    """The sentences of the first pairs of each file, `count` in all."""
    found: dict[object, list[str]] = {}
    for file, pair in pairs_by_file(files):
        found.setdefault(file, []).extend((pair.good, pair.bad))
    return [line for lines in found.values() for line in lines[: 2 * max(1, count // len(found) // 2)]]


def save(folder: str, pieces: int, vocabulary: int, width: int, layers: int) -> None:
    """A random model with a tokeniser of its own."""
    tokeniser = Tokenizer(models.BPE())
    tokeniser.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokeniser.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=pieces, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokeniser.train_from_iterator(topics.values(), trainer)
    marks = dict.fromkeys(("bos_token", "eos_token", "pad_token"), "<|end|>")
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokeniser, **marks).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_positions=512, n_embd=width, n_layer=layers, n_head=4, bos_token_id=0, eos_token_id=0
    )
    transformers.GPT2LMHeadModel(config).eval().save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1_000)
    parser.add_argument("--pairs", nargs="+", help="files of minimal pairs; as many of each are read")
    parser.add_argument("--models", nargs="+", choices=SIZES, default=list(SIZES))
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    from minicons.scorer import IncrementalLMScorer

    lines = paired(asked.pairs, asked.sentences) if asked.pairs else sentences(asked.sentences)
    print(
        "model | elman, sentences/s | minicons, sentences/s | ratio (median of turns) | of wall time | difference, bits"
    )
    for name in asked.models:
        with tempfile.TemporaryDirectory() as folder:
            save(folder, *SIZES[name])
            ours, theirs = elman.load(folder), IncrementalLMScorer(folder, "cpu")

        def score_theirs(scorer: IncrementalLMScorer = theirs) -> list[float]:
            parts = (lines[at : at + BATCH] for at in range(0, len(lines), BATCH))
            return [
                one
                for part in parts
                for one in scorer.sequence_score(part, reduction=lambda x: x.sum(0).item(), bos_token=True)
            ]

        def score_ours(model: object = ours) -> list[float]:
            return [float(log_probs.sum(dtype="float64")) for _, log_probs in model.score(lines)]

        seconds: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
        score_ours(), score_theirs()
        for _ in range(asked.repetitions):
            for who, score in (("ours", score_ours), ("theirs", score_theirs)):
                begun = time.process_time(), time.perf_counter()
                found = score()
                seconds[who].append((time.process_time() - begun[0], time.perf_counter() - begun[1]))
                if who == "ours":
                    own = found
        apart = max(abs(one - other) / math.log(2) for one, other in zip(own, found, strict=True))
        rates = [len(lines) / statistics.median(cpu for cpu, _ in seconds[who]) for who in ("ours", "theirs")]
        turns = zip(seconds["ours"], seconds["theirs"], strict=True)
        ratios = zip(*([b / a for a, b in zip(*turn, strict=True)] for turn in turns), strict=True)
        cpu, wall = map(statistics.median, ratios)
        print(f"{name} | {rates[0]:,.0f} | {rates[1]:,.0f} | {cpu:.2f} | {wall:.2f} | {apart:.1e}", flush=True)


if __name__ == "__main__":
    main()
