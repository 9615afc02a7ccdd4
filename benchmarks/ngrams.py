r"""n-gram models: `python benchmarks/ngrams.py [--text FILE [--query FILE]] [--order N]`.

A text is drawn whose words follow each other by Zipf's law, or a FILE is read; n-grams of its first nine tenths are
counted, and the rest is queried; with --query all of the text is counted and another FILE queried. Seconds are
processor time. `estimate` counts and smooths, `write` and `read` are those of an ARPA file, `query` scores the rest
word by word. Beside them: KenLM loading the same file and answering the same queries through its Python package, where
that is installed (`pip install kenlm==0.3.0` needs a compiler), and its `lmplz`, which the package does not contain,
where it is on the path. Both perplexities of what is queried, and the largest difference of a log-probability (base
ten), are printed; exit status 1 where that is above 1e-4.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from elman.data.text.vocabulary import Vocabulary
from elman.evaluation.ngram.arpa import LN10, read_arpa
from elman.evaluation.ngram.arpa_writing import write_arpa
from elman.evaluation.ngram.model import train

try:
    import kenlm
except ImportError:
    kenlm = None


EQUAL = 1e-4
"""The largest difference of a log-probability (base ten) of the same model."""


def drawn(sentences: int, words: int = 20_000) -> list[list[str]]:
    """Sentences in which each word depends on the one before: half of them come from 20 successors of it."""
    draw = np.random.default_rng(0)
    chance = 1 / np.arange(1, words + 1)
    chance /= chance.sum()
    successors = draw.choice(words, (words, 20), p=chance)
    found = []
    for length in draw.integers(5, 40, sentences).tolist():
        free, own, kind = draw.choice(words, length, p=chance), draw.integers(0, 20, length), draw.random(length)
        line = [int(free[0])]
        for at in range(1, length):
            line.append(int(successors[line[-1], own[at]] if kind[at] < 0.5 else free[at]))
        found.append([f"w{word}" for word in line])
    return found


def lines_of(file: Path) -> list[list[str]]:
    """The words of every line."""
    return [line.split() for line in file.read_text().splitlines()]


def seconds(run: Callable[[], object], repetitions: int) -> float:
    """The median processor time, of this process or of the ones it starts."""
    found = []
    for _ in range(repetitions):
        before = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        run()
        after = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        children = sum(getattr(after[1], name) - getattr(before[1], name) for name in ("ru_utime", "ru_stime"))
        found.append(after[0] - before[0] + children)
    return median(found)


def main() -> int:
    """Print one JSON line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text", type=Path)
    parser.add_argument("--query", type=Path)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=40_000)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    text = drawn(options.sentences)
    if options.text is not None:
        text = lines_of(options.text)
    counted, queried = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    if options.query is not None:
        counted, queried = text, lines_of(options.query)
    tokens = [word for line in counted for word in (*line, "<eos>")]
    vocabulary = Vocabulary.from_counts(Counter(tokens))
    ids = vocabulary.encode(tokens)

    def report(name: str, count: int, unit: str, run: Callable[[], object]) -> None:
        took = seconds(run, options.repetitions)
        facts = {"what": name, unit: count, "seconds": round(took, 3), f"{unit}_per_s": round(count / took)}
        print(json.dumps(facts), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        file, plain = Path(folder) / "model.arpa", Path(folder) / "text.txt"
        report("estimate", len(tokens), "tokens", lambda: train(ids, vocabulary, options.order))
        if (lmplz := shutil.which("lmplz")) is not None:
            plain.write_text("".join(" ".join(line) + "\n" for line in counted))
            command = [lmplz, "-o", str(options.order), "--text", str(plain), "--arpa", f"{folder}/kenlm.arpa"]
            report("estimate, lmplz", len(tokens), "tokens", lambda: subprocess.run(command, check=True))
        else:
            print(json.dumps({"what": "estimate, lmplz", "missing": "lmplz is not on the path"}))
        model = train(ids, vocabulary, options.order)
        ngrams = sum(len(level.keys) for level in model.table.levels)
        report("write", ngrams, "ngrams", lambda: write_arpa(model, file))
        report("read", ngrams, "ngrams", lambda: read_arpa(file))
        read, words = read_arpa(file), [word for line in queried for word in (*line, "<eos>")]
        report("query", len(words), "tokens", lambda: read.score(read.encode(words)))
        if kenlm is None:
            print(json.dumps({"what": "query, KenLM", "missing": "the package kenlm is not installed"}))
            return 0
        report("read, KenLM", ngrams, "ngrams", lambda: kenlm.Model(str(file)))
        theirs, lines = kenlm.Model(str(file)), [" ".join(line) for line in queried]
        report(
            "query, KenLM, word by word", len(words), "tokens", lambda: [[*theirs.full_scores(one)] for one in lines]
        )
        report("query, KenLM, sums of sentences", len(words), "tokens", lambda: [theirs.score(one) for one in lines])
        wanted = np.array([one[0] for line in lines for one in theirs.full_scores(line)])
        found = read.score(read.encode(words))[0] / LN10
        for name, log_probs in (("perplexity", found), ("perplexity, KenLM", wanted)):
            print(json.dumps({"what": name, "tokens": len(words), "perplexity": round(10 ** -log_probs.mean(), 3)}))
        largest = float(np.abs(found - wanted).max())
        print(json.dumps({"what": "largest difference", "log10": largest}))
        return int(largest > EQUAL)


if __name__ == "__main__":
    sys.exit(main())
