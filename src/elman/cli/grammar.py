"""elman grammar: sentences whose structure is known, and what a model has learnt of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.groups import Common
from elman.cli.help import family
from elman.cli.options import AsJson, Natural, OutFile, Positive, Share, TextRunFolder, group, record_of, writable
from elman.config.text import GrammarOptions
from elman.data.grammar.reading import read_grammar
from elman.drawing.page import require_file_name
from elman.errors import UserError
from elman.files import require_own

if TYPE_CHECKING:
    from elman.data.grammar.sample import Sentence

app = family(
    "grammar",
    "Artificial languages after Elman 1991: a probabilistic grammar with embedded clauses and agreement in number,"
    " gender, case, tense or features of your own makes sentences whose structure and true probabilities are known.",
)


@group("Sentences", 2, of=GrammarOptions())
class DrawOptions:
    """Which sentences are drawn."""


@app.command
def generate(
    rules: str,
    /,
    *,
    out: Annotated[Path | None, Parameter(metavar="FOLDER", validator=writable)] = None,
    drawn: DrawOptions = DrawOptions(),
    as_json: AsJson = False,
) -> None:
    """Write sentences of a grammar: train, valid and test, with their agreement dependencies.

    Writes train.txt, valid.txt and test.txt, one sentence per line, and beside each SPLIT.agreement.tsv with a row for
    each form that agrees with a word and each form that would not: both forms, the feature and its values, depth,
    levels of embedding between the two words, attractors. Without --out the sentences of the training split are
    printed. The lines of a file of rules::

        start S
        feature number sg pl
        feature gender f m
        controllers N
        targets Det V
        S -> Det[n,g] N[n,g] V[n]
        Det[sg,f] : la
        V[pl] : walk (2) sleep

    Args:
        rules: a file of rules, or one that comes with elman: elman-1991, prepositions, tense-and-gender
        out: the folder to write; it must not hold a text yet
    """
    from itertools import islice

    from elman.data.grammar import sample

    wanted = record_of(GrammarOptions(rules=rules), drawn)
    grammar = read_grammar(rules)
    if out is None:
        for sentence in islice(
            sample.sentences(grammar, sample.wish_of(wanted), f"{wanted.seed} train"), wanted.sentences
        ):
            record = {"words": sentence.words, "dependencies": [one._asdict() for one in sentence.dependencies]}
            show.print_result(as_json, record, notes=[" ".join(sentence.words)])
        return
    if out.is_file() or (out / "train.txt").exists():
        raise UserError(f"{out} is a file or holds a text already; choose another --out")
    require_own(out)
    counts = {split: _counts(found) for split, found in sample.write_text(grammar, wanted, out).items()}
    facts = {"folder": str(out), "splits": [{"split": split, **row} for split, row in counts.items()]}
    header = ["split", *(name.replace("_", " ") for name in counts["train"])]
    rows = [[split, *(f"{count:,}" for count in row.values())] for split, row in counts.items()]
    show.print_result(as_json, facts, (f"{rules} in {out}", header, rows))


def _counts(found: "Sequence[Sentence]") -> dict[str, int]:
    """What a split has."""
    links = [one for sentence in found for one in sentence.dependencies]
    return {
        "sentences": len(found),
        "complex": sum(sentence.depth > 0 for sentence in found),
        "tokens": sum(len(sentence.words) + 1 for sentence in found),
        "pairs": len(links),
        "across_2_levels": sum(one.levels >= 2 for one in links),
        "with_attractors": sum(one.attractors > 0 for one in links),
    }


@app.command(name="test")
def agreement(
    run: TextRunFolder,
    /,
    *,
    grammar: Annotated[str | None, Parameter(metavar="RULES")] = None,
    sentences: Positive = 5_000,
    complex: Share | None = None,
    max_depth: Natural | None = None,
    seed: Natural = 0,
    walk: Annotated[tuple[str, ...], Parameter(metavar="SENTENCE")] = (),
    unknown: Literal["refuse", "exclude"] = "refuse",
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """Agreement of a model by feature, embedding and attractors, its distance from the grammar, its trajectories.

    Fresh sentences of a grammar: how often the right form of a word is more probable than one that is wrong in one
    feature, the right value's share of the probability of such words, cross-entropy beside the grammar's own, and the
    hidden state along sentences. Writes a page with tables and plots.

    Args:
        grammar: a file of rules or a name (default: as in the recipe)
        sentences: fresh sentences
        complex: share with an embedded clause (default: as in the grammar)
        max_depth: the deepest embedding of clauses (default: as in the grammar)
        seed: seed of the draw
        walk: a sentence whose trajectory is drawn; may be repeated
        unknown: sentences and pairs with words that the model does not know; exclude: left out, both forms of a pair
        out: the page (default: RUN/grammar.html)
    """
    from elman.analysis.grammar import HEADER, cells, examine, options_of, write_findings

    loaded = common.open_text(run)
    page = require_file_name(out or loaded.path / "grammar.html")
    changes = {"complex": complex, "max_depth": max_depth}
    wanted = msgspec.structs.replace(
        options_of(loaded, grammar), **{key: value for key, value in changes.items() if value is not None}
    )
    with progress.counting(f"testing {run}") as advance:
        found = examine(
            loaded,
            wanted,
            count=sentences,
            seed=seed,
            walks=list(walk),
            leave_out=unknown == "exclude",
            advance=advance,
        )
    write_findings(page, found)
    tables = [(f"Agreement {title}", HEADER, [cells(one) for one in lines]) for title, lines in found.tables.items()]
    near = found.closeness
    notes = [
        found.verdict,
        f"nats per word: model {near.model:.4f}, grammar {near.grammar:.4f}; KL divergence {near.divergence:.4f}",
        f"{found.novelty}.",
        *found.not_judged,
        f"page: {page}",
    ]
    show.print_result(common.as_json, {"page": str(page), **found.summary()}, *tables, notes=notes)
