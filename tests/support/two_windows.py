"""A training of two windows in an epoch, and a trainer on it."""

import torch

from elman import config
from elman.data.batches import Batch
from elman.data.windows import Span
from elman.evaluation.perplexity import Score
from elman.learning.folder import Folder
from elman.learning.trainer import Trainer
from elman.learning.update import build_update
from elman.network.build import build_model
from support import text_runs

WORDS = 11


def span_of(step):
    """The window of a step, the first is 0: a short one, a long one in every epoch."""
    return Span(5, 15, step // 2) if step % 2 else Span(0, 5, step // 2)


class TwoWindows:
    """An epoch of a short window and a long one."""

    def spans(self, epoch):
        return [span_of(2 * epoch), span_of(2 * epoch + 1)]

    def batch(self, span):
        symbols = torch.arange(4 * (span.length + 1)).view(-1, 4) % WORDS
        return Batch(symbols[:-1], symbols[1:], None, torch.full((4,), span.start == 0))


def trainer_of(folder, validate=lambda model, part: Score(1.0, 1), **training):
    folder.mkdir(exist_ok=True)
    recipe = text_runs.recipe(**training)
    torch.manual_seed(0)
    update = build_update(recipe, build_model(recipe.model, WORDS))
    files = Folder(folder, update.model.device, {"recipe": config.decisive(recipe)})
    return Trainer(recipe, update, lambda max_extra: TwoWindows(), validate, files)
