"""elman compare, metrics and minimal-pairs: which run, which system's output, which sentence is better."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter
from msgspec import Meta

from elman.cli import progress, show, texts
from elman.cli.options import AsJson, AsUnk, Common, Natural, RunFolders, SplitOptions, TextFile, number
from elman.data.pairs.trees import linear_line, read_trees, to_pair
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.data.minimal_pairs import Pair
    from elman.evaluation.minimal_pairs import PairAccuracy
    from elman.evaluation.transduction import Rules
    from elman.tasks.text.run import TextRun


_HEADER = ["phenomenon", "pairs", "only unknown differ", "accuracy, %", "95 % interval", "no unknown", "accuracy, %"]


def compare(a: Path, b: Path, /, *, split: SplitOptions = SplitOptions(), common: Common = Common()) -> None:
    """Test whether run B is better than run A.

    A paired comparison on every token of a split: the difference of NLL with its 95 % interval and a two-sided p-value
    from the means of blocks of 100 tokens.

    Args:
        a: a run folder
        b: a run folder with the same vocabulary
    """
    from elman.evaluation.statistics import compare
    from elman.tasks.text.ensemble import require_one_vocabulary, run_log_probs

    runs = [common.open_text(folder) for folder in (a, b)]
    require_one_vocabulary(runs)
    corpus = runs[0].corpus(split.data)
    chosen = next((one for one in runs if one.reads_spelling), runs[0]).split(corpus, split.split)
    first, second = (run_log_probs(loaded, chosen, split.streams) for loaded in runs)
    found = compare(first, second)
    if found.tokens < 20:
        raise UserError(f"the {split.split} split has {found.tokens} tokens, too few to compare; it needs 20 or more")
    which = "B is better" if found.low > 0 else "A is better" if found.high < 0 else "no clear difference"
    rows = [
        ["NLL(A) - NLL(B), nats per token", f"{found.difference:+.4f}"],
        ["95 % interval", f"{found.low:+.4f} to {found.high:+.4f}"],
        ["p-value", f"{found.p_value:.2g}"],
        ["perplexity(A) / perplexity(B)", f"{found.ratio:.4f}"],
        ["tokens that B predicts better", f"{100 * found.better:.1f} %"],
        ["tokens", f"{found.tokens:,}"],
    ]
    facts = {"a": str(a), "b": str(b), "split": split.split, **msgspec.to_builtins(found)}
    show.print_result(common.as_json, facts, (f"A = {a}, B = {b}, {split.split}: {which}", ["", "value"], rows))


def metrics(
    references: TextFile,
    hypotheses: TextFile,
    /,
    *,
    against: Annotated[TextFile | None, Parameter(metavar="OTHER")] = None,
    kind: Literal["headlines", "translation", "trees"] = "translation",
    rouge_words: Literal["english", "spaces"] = "english",
    bleu_tokens: Literal["none", "13a", "char", "zh", "intl"] = "none",
    samples: Annotated[int, number(int, Meta(ge=10))] = 1000,
    seed: Natural = 0,
    as_json: AsJson = False,
) -> None:
    """ROUGE, BLEU and chrF, or bracket F1 of a system's output.

    Measures of output against references, line by line, with 95 % bootstrap intervals; --against tests a second system
    on the same lines (paired bootstrap, approximate randomisation).

    Args:
        references: the right output; for trees a treebank in brackets
        hypotheses: a system's output, one per line; - is standard input
        against: another system's output for the same references
        kind: headlines: ROUGE; translation: BLEU, chrF; trees: brackets
        rouge_words: words of ROUGE: a-z and 0-9, or what stands between spaces, as Japanese needs
        bleu_tokens: sacrebleu's tokenisation; none: the lines are tokenised
        samples: bootstrap samples
        seed: seed of the bootstrap
    """
    from elman.evaluation.statistics import differences, estimates
    from elman.evaluation.transduction import Rules, measures

    rules = Rules(kind, rouge_words, bleu_tokens)
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
    """The references, one per line, and for trees their sentences."""
    lines = texts.read_lines(name)
    if rules.kind != "trees":
        return [line.strip() for line in lines], []
    pairs = [to_pair(tree, True, False) for tree in read_trees("".join(lines), name)]
    return [linear for _, linear in pairs], [words for words, _ in pairs]


def _output(name: str, right: list[str], references: str, rules: "Rules") -> list[str]:
    lines = [line.strip() for line in texts.read_lines(name)]
    if len(lines) != len(right):
        raise UserError(
            f"{name} has {len(lines):,} lines and {references} has {len(right):,}"
            f" {'trees' if rules.kind == 'trees' else 'lines'}; line n must be the output for reference n"
        )
    if rules.kind != "trees":
        return lines
    return [linear_line(line, f"{name}:{number}") for number, line in enumerate(lines, start=1)]


def minimal_pairs(
    runs: RunFolders,
    /,
    *,
    pairs: Annotated[tuple[str, ...], Parameter(consume_multiple=1, metavar="FILE")],
    unknown_as_unk: AsUnk = False,
    common: Common = Common(),
) -> None:
    """Judge which sentence of a minimal pair is more probable.

    The share of pairs whose acceptable sentence is more probable, by phenomenon, with 95 % intervals.

    Args:
        pairs: BLiMP's .jsonl, Linzen's .text with .gold, .tsv of good TAB bad [TAB phenomenon], folders of them, or
            the known set blimp
    """
    from elman.data.minimal_pairs import read_pairs
    from elman.evaluation.minimal_pairs import by_field

    read = read_pairs(pairs)
    found: list[dict[str, Any]] = []
    tables: list[show.Table] = []
    for folder in runs:
        rows = _judge(common.open_text(folder), read, unknown_as_unk)
        fields = by_field(rows)
        facts = {"phenomena": [row.facts() for row in rows], "fields": [row.facts() for row in fields]}
        found.append({"run": str(folder), **facts})
        if fields:
            tables.append((f"{folder}: minimal pairs by field", _HEADER, [_cells(row) for row in fields]))
        tables.append((f"{folder}: minimal pairs", _HEADER, [_cells(row) for row in rows]))
    show.print_result(common.as_json, found[0] if len(found) == 1 else found, *tables)


def _judge(run: "TextRun", pairs: "list[Pair]", unknown_as_unk: bool) -> "list[PairAccuracy]":
    from elman.data.text.sentences import Lexicon
    from elman.evaluation.minimal_pairs import code, judge_pairs, sentence_log_probs

    lexicon = Lexicon(run.vocabulary) if run.reads_spelling and not unknown_as_unk else None
    coded = code(pairs, run.vocabulary, run.tokeniser, lexicon)
    model = run.model if lexicon is None else run.model.knowing(lexicon.words)
    with progress.counting(f"scoring pairs by {run.path}") as advance:
        return judge_pairs(coded, lambda ids, read: sentence_log_probs(model, ids, run.first, advance, read))


def _cells(row: "PairAccuracy") -> list[str]:
    low, high = row.accuracy.interval
    return [
        f"{row.field}: {row.phenomenon}" if row.field else row.phenomenon,
        f"{row.pairs:,}",
        f"{row.same:,}",
        _percent(row.accuracy.share),
        f"{_percent(low)} to {_percent(high)}",
        f"{row.known.count:,}",
        _percent(row.known.share),
    ]


def _percent(share: float) -> str:
    return "\N{EN DASH}" if share != share else f"{100 * share:.1f}"
