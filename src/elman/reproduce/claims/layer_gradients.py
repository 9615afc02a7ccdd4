"""How much of the gradient reaches the lowest layer, early in training."""

from dataclasses import dataclass
from itertools import islice

import torch

from elman.config.text import TextData
from elman.config.toml import find, load_recipe
from elman.data.text.corpus import open_corpus
from elman.data.windows import Batch, TrainingWindows
from elman.learning.bptt import WholeWindow, bptt
from elman.learning.optimisers import Optimiser
from elman.learning.update import Update
from elman.network.build import build_model
from elman.network.cores.stack import Stack
from elman.network.model import LanguageModel
from elman.objective.loss import Objective, build_objective
from elman.reproduce.arm import Measurement


@dataclass(frozen=True)
class LayerGradients:
    """Norm of the loss's gradient by layer at some `steps` of training, and that of the lowest layer over the top's.

    A recipe with the settings `heads` and `settings` is trained on the beginning of its text; the gradients are those
    of the first `windows` windows together, without dropout.
    """

    heads: str
    recipe: str = "reproduce/small-words.toml"
    settings: tuple[str, ...] = ("model.core.sizes=[100, 100, 100, 100]", "data.train_tokens=100000")
    steps: tuple[int, ...] = (0, 50, 200)
    windows: int = 5

    def __call__(self, seed: int, data: str | None) -> Measurement:
        """Train on --data, or on the corpus of the recipe."""
        recipe = load_recipe(find(self.recipe), [*self.settings, self.heads, f"seed={seed}"])
        assert isinstance(recipe.data, TextData)
        corpus = open_corpus(data or str(recipe.data.corpus), recipe.data.options)
        torch.manual_seed(seed)
        model, training = build_model(recipe.model, len(corpus.vocabulary)), recipe.training
        windows = TrainingWindows(corpus.split("train").tokens, training.batch_size, training.window.length)
        batches = [windows.batch(span) for span in islice(windows.spans(0), max(self.windows, *self.steps))]
        optimiser = Optimiser(training.optimiser, list(model.parameters()))
        update = Update(model, WholeWindow(), build_objective(training), optimiser, clip=training.clip)
        figures, first = dict[str, float](), list[float]()
        for step in range(max(self.steps) + 1):
            if step in self.steps:
                norms = layer_norms(model, batches[: self.windows])
                figures[f"step {step}"] = norms[0] / norms[-1]
                first = first or norms
            if step < max(self.steps):
                update(batches[step], training.optimiser.lr)
        return Measurement(figures, {"gradient norm": first})


def layer_norms(model: LanguageModel, batches: list[Batch]) -> list[float]:
    """Norm of the gradient of the mean loss over consecutive batches, layer by layer, without dropout."""
    core = model.core
    assert isinstance(core, Stack), "layers are those of a stack"
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
