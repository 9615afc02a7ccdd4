"""The work that `kills.py` kills: small inputs of every kind of data, and commands as a user would begin them again."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from elman.cli import main as elman_main

TRAINING = """
[training]
epochs = {epochs}
batch_size = 4
checkpoint_minutes = 0.001
optimiser = {{ kind = "adam", lr = 0.01 }}
averaging = {{ kind = "non-monotone", interval = 1 }}
window = {{ length = 8 }}
log_every = 5
"""

RECIPES = {
    "text": """
title = "words"
data = { kind = "text" }
[model]
encoder = { kind = "lookup", size = 8, dropout = 0.1, word_dropout = 0.1 }
core = { kind = "stack", sizes = [8, 8], weight_drop = 0.2, output_dropout = 0.1 }
output = { choice = { kind = "flat", tied = true } }
""",
    "music": """
title = "chords"
data = { kind = "music", pitches = 88, evaluation = { streams = 4 } }
[model]
encoder = { kind = "frames", size = 8, dropout = 0.1 }
core = { kind = "stack", sizes = [12], output_dropout = 0.1 }
output = { choice = { kind = "nade" } }
""",
    "pairs": """
title = "reversal"
data = { kind = "pairs", valid = 20, test = 20, max_source = 8, min_count = 2 }
[model]
encoder = { kind = "lookup", size = 16, dropout = 0.1 }
source = { encoder = { kind = "lookup", size = 16 }, stack = { sizes = [8] } }
core = { kind = "attentive", stack = { sizes = [16] }, output_dropout = 0.1 }
""",
    "series": """
title = "waves"
data = { kind = "series" }
[model]
encoder = { kind = "values", size = 6 }
core = { kind = "stack", sizes = [12], output_dropout = 0.05 }
output = { choice = { kind = "gaussian" } }
""",
    "trees": """
title = "trees"
data = { kind = "trees", valid = 10, test = 10 }
[model]
encoder = { kind = "lookup", size = 8, dropout = 0.1 }
core = { kind = "recursive", size = 8, output_dropout = 0.1 }
""",
    "tags": """
title = "tags"
data = { kind = "tags", form = "trees", valid = 10, test = 10 }
[model]
encoder = { kind = "lookup", size = 8, dropout = 0.1 }
core = { kind = "sentence", stack = { sizes = [8], output_dropout = 0.1 } }
""",
}
RECIPES["prediction"] = RECIPES["text"]
EPOCHS = {"text": 4, "prediction": 12, "music": 4, "pairs": 4, "series": 6, "trees": 4, "tags": 4}


def write_inputs(folder: Path) -> None:
    """Recipes and data of all kinds, small and always the same."""
    draw = np.random.default_rng(0)
    chain = draw.dirichlet(np.full(20, 0.1), size=20).cumsum(1)
    word, words = 0, []
    for place in draw.random(60_000):
        word = min(int(chain[word].searchsorted(place)), 19)
        words.append(f"w{word}")
    lines = [" ".join(words[at : at + 9]) for at in range(0, len(words), 9)]
    for name in ("text", "prediction"):
        (folder / f"{name}.txt").write_text("\n".join(lines[:120]) + "\n")
    (folder / "encoding.txt").write_text("\n".join(lines * 4) + "\n")
    steps = {"train": 200, "valid": 40, "test": 40}
    rolls = {f"{name}_roll": np.eye(88, dtype=np.uint8)[30 + np.arange(size) % 4 * 2] for name, size in steps.items()}
    lengths = {f"{name}_len": np.full(size // 10, 10, np.int32) for name, size in steps.items()}
    np.savez(folder / "music.npz", **rolls, **lengths)
    pairs = [draw.choice(list("abcdefgh"), draw.integers(1, 7)) for _ in range(240)]
    (folder / "pairs.tsv").write_text("".join(f"{' '.join(one)}\t{' '.join(one[::-1]).upper()}\n" for one in pairs))
    (folder / "series.csv").write_text("wave\n" + "".join(f"{np.sin(at / 3):.6f}\n" for at in range(400)))
    quadruples = draw.choice(list("abcdefgh"), (80, 4))
    bank = (f"(ROOT (S (NP (DT {a}) (NN {b})) (VP (VB {c}) (NP (NN {d})))))\n" for a, b, c, d in quadruples)
    written = "".join(bank)
    for name in ("trees", "tags"):
        (folder / f"{name}.ptb").write_text(written)
    for name, recipe in RECIPES.items():
        text = recipe + TRAINING.format(epochs=EPOCHS[name]) + "predict_loss = true\n" * (name == "prediction")
        (folder / f"{name}.toml").write_text(text.replace("length = 8", "") if name == "pairs" else text)


def train(inputs: Path, place: Path, kind: str, suffix: str) -> int:
    """Begin a run, or resume one that has a recipe."""
    out = place / "run"
    begun = (out / "recipe.toml").exists()
    what = ["--resume"] if begun else [str(inputs / f"{kind}.toml"), "--data", str(inputs / f"{kind}.{suffix}")]
    return elman_main(["train", *what, "--out", str(out), "--threads", "1", "--json"])


def encode(inputs: Path, place: Path) -> int:  # noqa: ARG001
    """Count the words of a text and encode it into the cache."""
    from elman.config.text import TextOptions
    from elman.data.text.corpus import open_corpus

    open_corpus(inputs / "encoding.txt", TextOptions())
    return 0


def tune(inputs: Path, place: Path) -> int:
    """Tune dynamic evaluation and the cache of a trained run, and evaluate with them."""
    if not (place / "run").exists():
        shutil.copytree(inputs / "trained" / "text" / "run", place / "copy", dirs_exist_ok=True)
        (place / "copy").rename(place / "run")
    tuning = ["--method", "dynamic+cache", "--tune", "--tune-tokens", "60", "--rule", "rms", "--threads", "1"]
    return elman_main(["evaluate", str(place / "run"), *tuning, "--json"])


def written(name: str, *command: str) -> Callable[[Path, Path], int]:
    """A command that writes `name` from a trained run; a folder that is there already is complete."""

    def work(inputs: Path, place: Path) -> int:
        out = place / name
        if "." not in name and out.exists():
            return 0
        return elman_main([*(one.format(inputs=inputs) for one in command), "--out", str(out)])

    return work


def sweep(inputs: Path, place: Path) -> int:
    """Two settings and two seeds of a recipe."""
    varied = ["--set", "training.optimiser.lr=0.01,0.02", "--seeds", "1,2", "--threads", "1"]
    resume = ["--resume"] if (place / "sweep").exists() else []
    what = [str(inputs / "series.toml"), "--data", str(inputs / "series.csv"), "--out", str(place / "sweep")]
    return elman_main(["sweep", *what, *varied, *resume, "--json"])


def reproduce(inputs: Path, place: Path) -> int:
    """A claim on two recipes, trained by the processes of `elman reproduce`."""
    from elman.study import claim, claims
    from elman.study.claim import Arm, Claim, Source
    from elman.study.comparison import lower
    from elman.study.measures import PERPLEXITY

    claim.find = lambda name: inputs / name
    settings = {name: f"model.output.activation={name}" for name in ("softmax", "sigsoftmax")}
    made = Claim(
        name="killed",
        sentence="sigsoftmax is lower",
        source="nowhere",
        arms=tuple(Arm(name, Source("text.toml", (setting,))) for name, setting in settings.items()),
        measure=PERPLEXITY,
        comparisons=(lower("test perplexity", "sigsoftmax", "softmax"),),
        seeds=1,
    )
    claims.CLAIMS[made.name] = made
    where = ["--out", str(place / "out"), "--data", str(inputs / "text.txt")]
    return elman_main(["reproduce", made.name, *where, "--threads", "1", "--json"])


KINDS: dict[str, Callable[[Path, Path], int]] = {
    "text": lambda inputs, place: train(inputs, place, "text", "txt"),
    "prediction": lambda inputs, place: train(inputs, place, "prediction", "txt"),
    "music": lambda inputs, place: train(inputs, place, "music", "npz"),
    "pairs": lambda inputs, place: train(inputs, place, "pairs", "tsv"),
    "series": lambda inputs, place: train(inputs, place, "series", "csv"),
    "trees": lambda inputs, place: train(inputs, place, "trees", "ptb"),
    "tags": lambda inputs, place: train(inputs, place, "tags", "ptb"),
    "encoding": encode,
    "tuning": tune,
    "reproduce": reproduce,
    "sweep": sweep,
    "score": written("scores.tsv", "score", "{inputs}/trained/text/run", "{inputs}/text.txt"),
    "embed": written("vectors.npz", "embed", "{inputs}/trained/text/run", "{inputs}/text.txt"),
    "ngram": written("words.arpa", "ngram", "train", "{inputs}/encoding.txt"),
    "report": written("report.html", "report", "{inputs}/trained/text/run"),
    "compose": written("tune.mid", "compose", "{inputs}/trained/music/run", "--seed", "1"),
    "export": written("export", "export", "{inputs}/trained/text/run"),
    "publish": written("registry", "models", "publish", "{inputs}/trained/text/run", "--name", "a", "--licence", "x"),
}

TRAINED = {"tuning": "text", "compose": "music"} | dict.fromkeys(
    ("score", "embed", "report", "export", "publish"), "text"
)
"""The kind of the trained run that work uses and must leave as it is."""
