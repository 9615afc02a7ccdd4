"""elman rescore: choose among the n best hypotheses of a recogniser."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from elman.cli import show, texts
from elman.cli.groups import Machine, UnknownOptions
from elman.cli.mixing import MixtureOptions
from elman.cli.options import Positive, Real, Reals, Strings, TextFile, TextRunFolder, group
from elman.data.hypotheses import (
    Hypothesis,
    by_utterance,
    read_kaldi,
    read_references,
    read_srilm,
    read_tsv,
    scattered,
)
from elman.errors import UserError, counted

if TYPE_CHECKING:
    from elman.tasks.text.rescoring import Mix


FEWEST_UTTERANCES = 30  # utterances on which tuning is not warned of


@group("Input", 2)
class InputOptions:
    """The form of the hypotheses.

    Attributes:
        kaldi: NBEST and references are in Kaldi's form: utterance-N words.
        srilm: NBEST is a folder, or a list, of SRILM's n-best files, one per utterance.
        costs: with --kaldi: files of utterance-N cost (negative scores).
        references: lines of id and text: report the word error rate on standard error.
    """

    kaldi: bool = False
    srilm: bool = False
    costs: Strings = ()
    references: Annotated[str | None, Parameter(metavar="FILE")] = None

    def read(self, file: str) -> list[Hypothesis]:
        """The hypotheses."""
        if self.kaldi and self.srilm:
            raise UserError("--kaldi and --srilm are two forms of input; give one of them")
        if self.costs and not self.kaldi:
            raise UserError("--costs belongs to --kaldi; tab-separated rows contain their scores")
        if self.srilm:
            return read_srilm(Path(file))
        lines = texts.read_lines(file)
        if self.kaldi:
            return read_kaldi(lines, [(cost, texts.read_lines(cost)) for cost in self.costs], file)
        return read_tsv(lines, file)


@group("Scores", 3)
class MixOptions:
    """How scores are combined.

    Attributes:
        weight: weight of the language model (default: 1).
        word_penalty: subtracted for each word (default: 0).
        given_weights: one weight per given score (default: 1 each).
        tune: choose weight, penalty and given weights by the word error rate on --references; explicit options are
            not tuned.
    """

    weight: Real | None = None
    word_penalty: Real | None = None
    given_weights: Reals = ()
    tune: bool = False

    def record(self, num_scores: int) -> "Mix":
        """The weights, for hypotheses with this number of given scores."""
        from elman.tasks.text.rescoring import Mix

        if self.given_weights and len(self.given_weights) != num_scores:
            count = len(self.given_weights)
            raise UserError(f"--given-weights has {count} numbers, the hypotheses have {num_scores} scores each")
        return Mix(
            weight=1.0 if self.weight is None else self.weight,
            word_penalty=self.word_penalty or 0.0,
            given_weights=self.given_weights or None,
        )

    def tuned(
        self, mix: "Mix", hypotheses: list[Hypothesis], log_probs: list[float], references: dict[str, str]
    ) -> "Mix":
        """Report the word error rate; with --tune the weights that make it smallest, else the same weights."""
        from elman.tasks.text.rescoring import Grid, Trial

        trial = Trial(hypotheses, log_probs, references)
        if missing := trial.without_hypothesis:
            print(
                f"{len(missing):,} of {len(references):,} references, such as {missing[0]}, have no hypothesis: their"
                f" {trial.deleted:,} words count as deleted in the word error rate",
                file=sys.stderr,
            )
        alone = trial.error_rate(msgspec.structs.replace(mix, weight=0.0))
        if self.tune:
            fixed = {"weights": self.weight, "penalties": self.word_penalty}
            grid = Grid(**{name: (value,) for name, value in fixed.items() if value is not None})
            mix, rate = trial.tuned(mix, msgspec.structs.replace(grid, given=()) if self.given_weights else grid)
            given = (
                "" if mix.given_weights is None else " --given-weights " + " ".join(f"{w:g}" for w in mix.given_weights)
            )
            print(f"tuned: --weight {mix.weight:g} --word-penalty {mix.word_penalty:g}{given}", file=sys.stderr)
            _warn_of_tuning(len(by_utterance(hypotheses)), mix)
        else:
            rate = trial.error_rate(mix)
        print(f"word error rate {100 * rate:.2f} %; without the model {100 * alone:.2f} %", file=sys.stderr)
        return mix


def _warn_of_tuning(utterances: int, mix: "Mix") -> None:
    if utterances < FEWEST_UTTERANCES:
        print(
            f"warning: tuned on {counted(utterances, 'utterance')}; weights tuned on fewer than"
            f" {FEWEST_UTTERANCES} are mostly chance",
            file=sys.stderr,
        )
    if mix.weight == 0:
        print("warning: the weight is 0, so the model does not take part in the choice", file=sys.stderr)


def rescore(
    run: TextRunFolder,
    nbest: TextFile,
    /,
    *,
    form: InputOptions = InputOptions(),
    scores: MixOptions = MixOptions(),
    reading: texts.ReadingOptions = texts.ReadingOptions(),
    unknown: UnknownOptions = UnknownOptions(),
    mixture: MixtureOptions = MixtureOptions(),
    carry: bool = False,
    all: bool = False,
    batch_size: Positive = 32,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    machine: Machine = Machine(),
) -> None:
    """Choose among the n best hypotheses of a recogniser.

    Adds the log-probability (natural) of each hypothesis to its given scores and prints the best of each utterance:
    sum of the given scores + weight * log p(text) - word penalty * words.

    Args:
        nbest: rows of id, scores and text with tabs between; - is standard input
        carry: read each utterance after the texts chosen before it
        all: print all hypotheses with their scores, the best first
        batch_size: hypotheses scored at a time
        as_json: JSON lines with all scores
    """
    from elman.evaluation.scoring import Unknown
    from elman.tasks.text import rescoring

    unknown.check("exclude-items")
    if scores.tune and form.references is None:
        raise UserError("--tune needs --references to tune on")
    if scores.tune and carry:
        raise UserError("--tune and --carry: what is carried depends on the weight; tune without --carry first")
    hypotheses = form.read(nbest)
    mix = scores.record(len(hypotheses[0].scores))
    source = form.references
    references = None if source is None else read_references(texts.read_lines(source), source)
    if references is not None:
        _check_references(hypotheses, references, source)
    loaded = machine.open_text(run)
    mixture.join(loaded)
    _notice(hypotheses, kaldi=form.kaldi)
    reader = reading.reader(loaded, texts.shown_name(nbest), unknown)
    read = rescoring.read_hypotheses(loaded, hypotheses, reader)
    texts.report(reader)
    types = unknown.unknown_types or rescoring.unknown_types(read)
    treatment = Unknown(treatment=unknown.treatment, types=types)
    if treatment.treatment == "exclude" and (strange := sum(any(one.unknown) for one, _ in read.items)):
        print(
            f"--unknown exclude: log p leaves out the unknown words of {counted(strange, 'hypothesis', 'hypotheses')},"
            " which favours these over others",
            file=sys.stderr,
        )
    if carry:
        log_probs = rescoring.log_probs_carried(loaded, hypotheses, read, treatment, mix)
    else:
        log_probs = rescoring.log_probs_fresh(loaded, read, treatment, batch_size)
    if references is not None:
        mix = scores.tuned(mix, hypotheses, log_probs, references)
    _print(hypotheses, log_probs, mix, every=all, as_json=as_json, between=" " if form.kaldi else "\t")


def _notice(hypotheses: list[Hypothesis], *, kaldi: bool) -> None:
    """Say on standard error what a list may not have been meant to be."""
    sizes = [len(group) for group in by_utterance(hypotheses).values()]
    if max(sizes) == 1:
        print(f"every id has one hypothesis ({len(sizes):,} ids): there is nothing to choose", file=sys.stderr)
    name = None if kaldi else scattered(hypotheses)
    if name is not None:
        print(f"the id {name} appears again after others; all its rows are one utterance", file=sys.stderr)


def _check_references(hypotheses: list[Hypothesis], references: Mapping[str, str], name: str | None) -> None:
    """Raise UserError where one is missing; report capitals on standard error.

    They are reported if references and hypotheses have no common word, but have one if capitals are ignored.
    """
    missing = sorted({one.utterance for one in hypotheses} - references.keys())
    if missing:
        raise UserError(f"{name}: no reference for {missing[0]}, one of {len(missing)} that are missing")
    said = {word for one in hypotheses for word in one.text.split()}
    right = {word for text in references.values() for word in text.split()}
    if not said & right and {word.casefold() for word in said} & {word.casefold() for word in right}:
        print(
            f"{name}: no word of the references is in the hypotheses as it is written, but in other capitals; every"
            " word counts as wrong: write both in the same way",
            file=sys.stderr,
        )


def _print(
    hypotheses: list[Hypothesis], log_probs: list[float], mix: "Mix", *, every: bool, as_json: bool, between: str
) -> None:
    from elman.tasks.text.rescoring import ranked

    if every and not as_json:
        given = [f"given_{number + 1}" for number in range(len(hypotheses[0].scores))]
        print("id", "rank", "score", "log_prob", *given, "text", sep="\t")
    for utterance, order in ranked(hypotheses, log_probs, mix):
        for rank, index in enumerate(order if every else order[:1], start=1):
            one, log_prob = hypotheses[index], round(log_probs[index], 6)
            score = round(mix.score(one, log_probs[index]), 6)
            if as_json:
                row = {"id": utterance, "rank": rank, "score": score, "log_prob": log_prob, "given": one.scores}
                show.print_json(row | {"text": one.text})
            elif every:
                print(utterance, rank, score, log_prob, *one.scores, one.text, sep="\t")
            else:
                print(utterance, one.text, sep=between)
