"""Whether every small recipe for texts learns: its loss after a few hundred steps beside the unigram's.

    python benchmarks/recipes_learn.py FOLDER [NAME ...] [--steps 300]

FOLDER has train.txt, valid.txt and test.txt of words. Vocabularies are cut to 1,000 words, widths to 64 and 96 units,
batches to 16 columns; everything else, such as rates, initialisation and clipping, is the recipe's, whose schedule is
shortened to the steps. The exit status is 1 where a recipe is worse than the unigram at the end.
"""

import argparse
import collections
import math
import sys
from pathlib import Path

import torch

from elman.config import Recipe
from elman.config.text import TextData
from elman.config.toml import load_recipe
from elman.errors import UserError
from elman.learning.progress import rate
from elman.tasks.experiment import build
from elman.tasks.plan import Plan

RECIPES = Path(__file__).parents[1] / "recipes"


def shrunk(path: Path) -> Recipe | None:
    """A recipe for words at a size that trains in seconds; None where it is for other data."""
    recipe = load_recipe(path)
    if not isinstance(recipe.data, TextData) or recipe.data.tokenisation != "words":
        return None
    settings = ["data.max_vocabulary=1000", "data.vocabulary_from=train", "training.batch_size=16"]
    encoder, core = recipe.model.encoder, recipe.model.core
    if encoder.__struct_config__.tag == "lookup" and getattr(core, "sizes", None):
        settings += ["model.encoder.size=64", f"model.core.sizes={[96] * (len(core.sizes) - 1) + [64]}"]
    return load_recipe(path, settings)


def trained(recipe: Recipe, data: str, steps: int) -> float:
    """The validation loss (nats per token) after a number of steps."""
    _, task, model, update = build(Plan.trial(recipe, data, torch.device("cpu")))
    windows, phase, done, epoch = task.windows(recipe.training.window.max_extra), recipe.training, 0, 0
    while done < steps:
        for span in windows.spans(epoch)[: steps - done]:
            now = done / steps * phase.epochs
            lr = rate(phase.schedule, phase.optimiser.lr, now, phase.epochs, [])
            update(windows.batch(span), lr)
            done += 1
        epoch += 1
    score = task.validate(model)
    return score.nll_sum / score.count


def unigram(data: Path) -> float:
    """The loss of the frequencies of the 1,000 most frequent words, others and ends of lines included."""
    train, valid = (
        [word for line in (data / name).read_text().splitlines() for word in [*line.split(), "<eos>"]]
        for name in ("train.txt", "valid.txt")
    )
    kept = {word for word, _ in collections.Counter(train).most_common(1000)}
    counts = collections.Counter(word if word in kept else "<unk>" for word in train)
    total = sum(counts.values()) + len(counts)
    return -sum(math.log((counts[word if word in kept else "<unk>"] + 1) / total) for word in valid) / len(valid)


def main() -> int:
    """Print a line for each recipe, those that do not learn marked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--steps", type=int, default=300)
    given = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    names = given.names or sorted(str(path.relative_to(RECIPES)) for path in RECIPES.glob("*/small-*.toml"))
    base, worse = unigram(given.data), 0
    print(f"unigram {base:.3f}")
    for name in names:
        try:
            recipe = shrunk(RECIPES / name)
            if recipe is None:
                continue
            loss = trained(recipe, str(given.data), given.steps)
        except UserError as error:
            print(f"{name}: cannot be shrunk: {error}", flush=True)
            continue
        worse += not loss < base
        print(f"{name}: {loss:.3f}{'' if loss < base else '  NOT BETTER THAN THE UNIGRAM'}", flush=True)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
