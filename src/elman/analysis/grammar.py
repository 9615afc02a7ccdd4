"""A trained model on fresh sentences of a grammar."""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from elman.analysis.agreement import Distance, judge, line, predictions, principal_components, require_words, table
from elman.analysis.grammar_page import Findings, Walk
from elman.config.text import GrammarOptions
from elman.data.grammar.exact import Oracle
from elman.data.grammar.reading import read_grammar
from elman.data.grammar.sample import Sentence, sentences, wish_of
from elman.errors import UserError
from elman.tasks.text.run import TextRun

SEED = "agreement"
"""Apart from the seeds of all splits, so that test sentences are drawn anew."""


def options_of(run: TextRun, grammar: str | None) -> GrammarOptions:
    """The grammar and the sentences a run was trained on, or another grammar.

    Raises:
        UserError: the recipe names no grammar and none is given.

    """
    own = run.data.grammar
    if grammar is None and own is None:
        raise UserError(f"{run.path}: its recipe names no grammar; give one with --grammar, such as elman-1991")
    if grammar is None:
        assert own is not None
        return own
    return msgspec.structs.replace(own or GrammarOptions(), rules=grammar)


def examine(
    run: TextRun,
    options: GrammarOptions,
    *,
    count: int,
    seed: int = 0,
    walks: Sequence[str] = (),
    advance: Callable[[int, int], None] | None = None,
) -> Findings:
    """Agreement by depth and attractors, distance from the grammar, and trajectories.

    Args:
        run: the model.
        options: what the sentences are like; shares and limits count, the numbers of the splits do not.
        count: fresh sentences.
        seed: of the draw.
        walks: sentences whose trajectories are wanted; without them three of the test, one of each depth.
        advance: told how many sentences are done, and how many there are.

    Raises:
        UserError: the model does not know the grammar's words, or the sentences cannot be drawn.

    """
    grammar = read_grammar(options.rules)
    require_words(grammar, run.vocabulary)
    wish = wish_of(options)
    drawn = list(islice(sentences(grammar, wish, f"{seed} {SEED}"), count))
    distance, judged, states = Distance(Oracle(grammar, wish, run.vocabulary.words), run.vocabulary), [], []
    for index, (sentence, said) in enumerate(
        zip(drawn, predictions(run.model, run.vocabulary, drawn, run.first), strict=True), start=1
    ):
        judged += judge(grammar, run.vocabulary, sentence, said.log_probs)
        distance.add(sentence, said.log_probs)
        states.append(said.states)
        if advance is not None and index % 50 == 0:
            advance(index, count)
    shown = [Sentence(tuple(walk.split()), (), 0) for walk in walks] or _of_each_depth(drawn)
    walked = predictions(run.model, run.vocabulary, shown, run.first)
    return Findings(
        run=str(run.path),
        grammar=options.rules,
        whole=line("all", judged),
        by_levels=table(judged, lambda one: one.levels, _counted("level")),
        by_attractors=table(judged, lambda one: one.attractors, _counted("attractor")),
        by_depth=table(judged, lambda one: one.depth, lambda depth: f"depth {depth}"),
        closeness=distance.closeness,
        sentences=len(drawn),
        seen=_seen(run, drawn),
        components=principal_components(states),
        walks=[Walk(one.words, said.states) for one, said in zip(shown, walked, strict=True)],
    )


def _counted(noun: str) -> Callable[[int], str]:
    return lambda number: f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _of_each_depth(drawn: Sequence[Sentence]) -> list[Sentence]:
    """The first sentence of depth 0, 1 and 2 that has a dependency across as many levels."""
    found = []
    for depth in range(3):
        across = (
            one for one in drawn if one.depth == max([link.levels for link in one.dependencies], default=0) == depth
        )
        found += list(islice(across, 1))
    return found


def _seen(run: TextRun, drawn: Sequence[Sentence]) -> int:
    """How many of the sentences stand in the training text, where that is still there."""
    path = Path(str(run.facts["source"])) / "train.txt"
    if not path.is_file():
        return 0
    known = set(path.read_text(encoding="utf-8").splitlines())
    return sum(" ".join(one.words) in known for one in drawn)
