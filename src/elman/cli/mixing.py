"""--mix: n-gram models as a part of the model that evaluates, scores, rescores and generates."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from elman.cli import progress
from elman.cli.options import group, refuse
from elman.errors import UserError, notice

if TYPE_CHECKING:
    import numpy as np

    from elman.evaluation.ngram.alignment import AlignedNGram
    from elman.evaluation.ngram.model import NGramModel
    from elman.tasks.text.run import TextRun

LEAST = 1e-9  # the smallest weight of a part of a mixture

COUNTED = re.compile(r"([1-9]\d?)-gram")
"""A model of the training text of a run, read as one running stream, as the network reads it."""


@group("Mixture", 5)
class MixtureOptions:
    """n-gram models that are mixed with the network.

    Attributes:
        mix: an n-gram model in ARPA form, or as 5-gram a Kneser-Ney model of the run's training text, counted when it
            is asked for; and = with its weight. May be repeated. The network has the rest of the weight. Without
            weights those that are best on the valid split are found by EM and printed on standard error.
    """

    mix: Annotated[tuple[str, ...], Parameter(metavar="NGRAM[=W]")] = ()

    def refuse_with(self, names: Sequence[str]) -> None:
        """Raises UserError where there is a mixture and one of some options, which do without."""
        if self.mix:
            refuse(names, "does not belong to --mix; leave one of the two out")

    def parts(self) -> tuple[list[str], list[float] | None]:
        """The names of the models, and their weights if given; raises UserError where the weights are impossible."""
        found = [_parsed(one) for one in self.mix]
        given = [weight for _, weight in found if weight is not None]
        if given and len(given) < len(found):
            raise UserError("--mix: give every n-gram model a weight, or none, and they are found on the valid split")
        if sum(given) >= 1:
            raise UserError(f"--mix: the weights sum to {sum(given):g}; leave the network a part of 1")
        return [name for name, _ in found], given or None

    def models(self, run: "TextRun") -> "list[AlignedNGram]":
        """The n-gram models over the vocabulary of a run."""
        return [_model(name, run) for name in self.parts()[0]]

    def weights(self, shares: Sequence[float], members: "Callable[[], list[np.ndarray]]") -> list[float]:
        """The weights of runs that have these shares of the rest, and of the n-gram models.

        Without weights they are the best ones for the log-probabilities that `members` returns.
        """
        import numpy as np

        from elman.evaluation.mixture import best_weights

        names, given = self.parts()
        if given is not None:
            return [(1 - sum(given)) * share / sum(shares) for share in shares] + given
        log_probs = members()
        found = [max(LEAST, weight) for weight in best_weights(log_probs)]
        of_runs = found[: len(shares)]
        text = [f"network {weight:.4f}" for weight in of_runs]
        text += [f"{name} {weight:.4f}" for name, weight in zip(names, found[len(shares) :], strict=True)]
        counted = int((~np.isnan(log_probs[0])).sum())
        print(f"mixture: {', '.join(text)} (EM on {counted:,} tokens, valid)", file=sys.stderr)
        return found

    def join(self, run: "TextRun") -> None:
        """Make the mixture the model of a run."""
        if not self.mix:
            return
        from elman.evaluation.mixture import Mixture
        from elman.tasks.text.ensemble import member_log_probs

        ngrams = self.models(run)

        def members() -> "list[np.ndarray]":
            split = run.split(run.corpus(), "valid")
            return member_log_probs([run], split, ngrams, run.data.evaluation.for_choosing)

        run.model = Mixture(run.model, ngrams, self.weights([1.0], members)[1:])


def read_ngram(path: Path) -> "NGramModel":
    """The n-gram model of an ARPA file, with a bar while it is read."""
    from elman.evaluation.ngram.arpa import read_arpa

    with progress.counting(f"reading {path.name}") as advance:
        return read_arpa(path, advance)


def aligned(path: Path, run: "TextRun") -> "AlignedNGram":
    """The n-gram model of a file over the vocabulary of a run; words that one of them lacks are reported."""
    from elman.evaluation.ngram.alignment import AlignedNGram

    model = read_ngram(path)
    found = AlignedNGram(model, run.vocabulary, str(path))
    if found.missing:
        how = "have probability 0" if model.unk is None else "share its probability of <unk>"
        notice(f"{path}: {found.missing:,} of {len(run.vocabulary):,} words of {run.path} are not in it and {how}")
    if found.foreign:
        how = "are left out" if run.vocabulary.unk is None else "are <unk>"
        notice(f"{path}: {found.foreign:,} of its {len(model.words):,} words are not in {run.path} and {how} there")
    return found


def _model(name: str, run: "TextRun") -> "AlignedNGram":
    """The n-gram model of a file, or else the one called `COUNTED`, over the vocabulary of a run."""
    counted = COUNTED.fullmatch(name)
    if counted is None and not Path(name).exists():
        raise UserError(f"--mix {name}: cannot be read (no such file); give an ARPA file, or 1-gram to 99-gram")
    if counted is None or Path(name).is_file():
        return aligned(Path(name), run)
    from elman.tasks.text.ensemble import own_counts

    with progress.counting(f"counting {name}s"):
        return own_counts(run, int(counted[1]))


def _parsed(text: str) -> tuple[str, float | None]:
    """The name and the weight of NGRAM or NGRAM=W."""
    name, equals, number = text.rpartition("=")
    if not equals or Path(text).is_file():
        return text, None
    try:
        weight = float(number)
    except ValueError:
        raise UserError(f"--mix {text}: expected a weight after =, such as {name}=0.2") from None
    if not 0 < weight < 1:
        raise UserError(f"--mix {text}: the weight must be above 0 and below 1")
    return name, weight
