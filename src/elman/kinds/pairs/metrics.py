"""elman metrics: measures of a system's output, and whether another system's differs."""

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from cyclopts import Parameter
from msgspec import Meta

from elman.cli import show, texts
from elman.cli.options import AsJson, Natural, TextFile, number
from elman.data.trees.brackets import linear_line, read_trees, to_pair
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.kinds.pairs.measures import Rules


def metrics(
    references: TextFile,
    hypotheses: TextFile,
    /,
    *,
    against: Annotated[TextFile | None, Parameter(metavar="OTHER")] = None,
    kind: Literal["headlines", "translation", "sequences", "trees"] = "translation",
    rouge_words: Literal["english", "spaces"] = "english",
    bleu_tokens: Literal["none", "13a", "char", "zh", "intl"] = "none",
    unit: Literal["words", "characters"] = "words",
    samples: Annotated[int, number(int, Meta(ge=10))] = 1000,
    seed: Natural = 0,
    as_json: AsJson = False,
) -> None:
    """ROUGE, BLEU and chrF, error rate, or bracket F1 of a system's output.

    Measures of output against references, line by line, with 95 % bootstrap intervals; --against tests a second system
    on the same lines (paired bootstrap, approximate randomisation).

    Args:
        references: the right output; for trees a treebank in brackets; for sequences also lines `source TAB target`,
            where the targets of one source are alternatives
        hypotheses: a system's output, one per line; - is standard input
        against: another system's output for the same references
        kind: headlines: ROUGE; translation: BLEU, chrF; sequences: whole lines and edit distance; trees: brackets
        rouge_words: words of ROUGE: a-z and 0-9, or what stands between spaces, as Japanese needs
        bleu_tokens: sacrebleu's tokenisation; none: the lines are tokenised
        unit: symbols of the edit distance: what stands between spaces, or characters
        samples: bootstrap samples
        seed: seed of the bootstrap
    """
    from elman.evaluation.statistics import differences, estimates
    from elman.kinds.pairs.measures import Rules, measures

    rules = Rules(kind, rouge_words, bleu_tokens, unit)
    right, sentences = _references(references, rules)
    names = [hypotheses] if against is None else [hypotheses, against]
    systems = {name: measures(_output(name, right, references, rules), right, rules, sentences) for name in names}
    shown = {name: estimates(found, samples, seed) for name, found in systems.items()}
    compared = [] if against is None else differences(systems[hypotheses], systems[against], samples, seed)
    if as_json:
        facts = {"references": references, "lines": len(right), "systems": msgspec.to_builtins(shown)}
        show.print_json({**facts, "differences": msgspec.to_builtins(compared)})
        return
    show.print_measures(f"{references}, {len(right):,} lines", shown)
    if compared:
        show.print_differences(f"{against} - {hypotheses}", compared)


def _references(name: str, rules: "Rules") -> tuple[list[str], list[str]]:
    """The references, one per line, and for trees their sentences, for sequences their sources where they are given."""
    lines = texts.read_lines(name)
    if rules.kind == "sequences" and any("\t" in line for line in lines):
        rows = [[cell.strip() for cell in line.split("\t")] for line in lines]
        for number, row in enumerate(rows, start=1):
            if len(row) != 2:
                raise UserError(f"{name}:{number}: {len(row) - 1} tabs; every line is a source, one tab and a target")
        return [target for _, target in rows], [source for source, _ in rows]
    if rules.kind != "trees":
        return [line.strip() for line in lines], []
    pairs = [to_pair(tree, True, False) for tree in read_trees("".join(lines), name)]
    return [linear for _, linear in pairs], [words for words, _ in pairs]


def _output(name: str, right: list[str], references: str, rules: "Rules") -> list[str]:
    lines = [line.strip() for line in texts.read_output(name)]
    if len(lines) != len(right):
        raise UserError(
            f"{name} has {len(lines):,} lines and {references} has {len(right):,}"
            f" {'trees' if rules.kind == 'trees' else 'lines'}; line n must be the output for reference n"
        )
    if rules.kind != "trees":
        return lines
    return [linear_line(line, f"{name}:{number}") for number, line in enumerate(lines, start=1)]
