"""How much of the gradient reaches the lowest layer, early in training."""

import statistics
from dataclasses import dataclass
from itertools import islice

import torch

from elman.config.text import TextData
from elman.config.toml import find, load_recipe
from elman.data.batches import Batch
from elman.data.text.corpus import open_corpus
from elman.data.windows import TrainingWindows
from elman.learning.bptt import bptt
from elman.learning.update import build_update
from elman.network.build import build_model
from elman.network.cores.stack import StackCore
from elman.network.model import LanguageModel
from elman.objective.loss import Objective
from elman.reproduce.arm import Measurement


@dataclass(frozen=True)
class LayerGradients:
    """The norm of the loss's gradient at the lowest layer over that at the top, early in training.

    A recipe with the settings `heads` and `settings` is trained for `steps` steps on the beginning of its text. Before
    the first and after every `every` steps the gradients are those of the first `windows` windows together, without
    dropout; the mean is geometric.
    """

    heads: str
    recipe: str = "reproduce/small-words.toml"
    settings: tuple[str, ...] = ("model.core.sizes=[100, 100, 100, 100]", "data.train_tokens=150000")
    steps: int = 200
    every: int = 20
    windows: int = 5

    def __call__(self, seed: int, data: str | None) -> Measurement:
        """Train on --data, or on the corpus of the recipe."""
        recipe = load_recipe(find(self.recipe), [*self.settings, self.heads, f"seed={seed}"])
        assert isinstance(recipe.data, TextData)
        corpus = open_corpus(data or str(recipe.data.corpus), recipe.data.options)
        torch.manual_seed(seed)
        model, training = build_model(recipe.model, len(corpus.vocabulary)), recipe.training
        windows = TrainingWindows(corpus.split("train").tokens, training.batch_size, training.window.length)
        batches = [windows.batch(span) for span in islice(windows.spans(0), self.steps + self.windows)]
        update = build_update(recipe, model)
        found = [layer_norms(model, batches[: self.windows])]
        for step, batch in enumerate(batches[: self.steps], start=1):
            update(batch, training.optimiser.lr)
            if step % self.every == 0:
                found.append(layer_norms(model, batches[: self.windows]))
        ratios = [norms[0] / norms[-1] for norms in found]
        figures = {"beginning": ratios[0], "mean": statistics.geometric_mean(ratios)}
        return Measurement(figures, {"lowest / top": ratios, "gradient norm": found[0]})


def layer_norms(model: LanguageModel, batches: list[Batch]) -> list[float]:
    """Norm of the gradient of the mean loss over consecutive batches, layer by layer, without dropout."""
    core = model.core
    assert isinstance(core, StackCore), "layers are those of a stack"
    model.eval()
    model.zero_grad()
    state = model.begin(batches[0].inputs.shape[1])
    for batch in batches:
        _, state = bptt(model, Objective(), batch, state)
    norms = []
    for layer in core.layers:
        parts = [parameter.grad.norm() for parameter in layer.parameters() if parameter.grad is not None]
        norms.append(torch.stack(parts).norm().item())
    model.zero_grad()
    return norms
