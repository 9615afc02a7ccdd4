"""elman analyze frequency, neighbours and attention: words rare and frequent, near each other, and looked at."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import Meta

from elman.cli import show
from elman.cli.options import AsUnk, Common, OutFile, PairRunFolder, Positive, SplitOptions, TextRunFolder, number
from elman.cli.translate import SHOWN, SearchOptions, search
from elman.drawing.page import require_file_name
from elman.errors import UserError


def frequency(
    run: TextRunFolder,
    /,
    *,
    split: SplitOptions = SplitOptions(),
    edges: Annotated[tuple[int, ...], number(int, Meta(ge=1), many=True)] = (),
    unknown_as_unk: AsUnk = False,
    common: Common = Common(),
) -> None:
    """Perplexity of rare and frequent words, and of what follows them.

    Perplexity of a split by how often its words were seen in training: of the words themselves, and of the tokens that
    follow them, where the model has read them. <unk> has a row of its own. Prints a table, no page.

    Args:
        edges: rising counts at which bins of frequency begin, beside 0 (default: 1 5 25 100 1000)
    """
    from elman.analysis.by_word import EDGES, by_frequency
    from elman.tasks.text.ensemble import run_log_probs

    chosen = edges or EDGES
    if list(chosen) != sorted(set(chosen)):
        raise UserError(f"--edges {' '.join(map(str, chosen))}: they must rise")
    loaded = common.open_text(run)
    corpus = loaded.corpus(split.data)
    read = corpus.split(split.split) if unknown_as_unk else loaded.split(corpus, split.split)
    log_probs = run_log_probs(loaded, read, split.streams)
    train, vocabulary = loaded.corpus().split("train").tokens, loaded.vocabulary
    bins = by_frequency(log_probs, read.tokens, train, len(vocabulary), vocabulary.unk, chosen)
    measured = ("tokens", "perplexity", "following", "following_perplexity")
    rows = [{"seen": one.name} | {name: getattr(one, name) for name in measured} for one in bins]
    facts = {"run": str(run), "data": corpus.source, "split": split.split, "bins": rows}
    header = ["seen in training", "tokens", "perplexity", "tokens after them", "perplexity"]
    cells = [
        [one.name, f"{one.tokens:,}", _number(one.perplexity), f"{one.following:,}", _number(one.following_perplexity)]
        for one in bins
    ]
    show.print_result(common.as_json, facts, (f"{run}, {split.split}: by training frequency", header, cells))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


def neighbours(
    run: TextRunFolder,
    words: tuple[str, ...],
    /,
    *,
    k: Annotated[Positive, Parameter(name="-k")] = 5,
    before_highway: bool = False,
    common: Common = Common(),
) -> None:
    """The words nearest to a string, by the cosine of their vectors.

    The words of the vocabulary whose input vectors are nearest to that of a string. Where the model reads spelling any
    string has a vector; otherwise it must be in the vocabulary. Prints a table, no page.

    Args:
        words: strings, such as looooook
        k: neighbours per string
        before_highway: compare the output of the filters, below the highway layers
    """
    from elman.analysis.embedding import neighbourhoods
    from elman.data.text.tokeniser import fold

    loaded = common.open_text(run)
    asked = fold(list(words)) if loaded.options.folds_tokens else list(words)
    found = neighbourhoods(loaded.model, loaded.vocabulary, asked, k, highway=not before_highway)
    rows = [
        {"word": word, "known": known, "neighbours": [near._asdict() for near in nearest]}
        for word, known, nearest in found
    ]
    facts = {"run": str(run), "before_highway": before_highway, "words": rows}
    where = "below the highway" if before_highway else "by their vectors"
    cells = [
        [f"{word}{'' if known else ' (unknown)'}", *(f"{near.word} {near.cosine:.2f}" for near in nearest)]
        for word, known, nearest in found
    ]
    table = (f"{run}: nearest words, {where}", ["", *map(str, range(1, len(cells[0])))], cells)
    show.print_result(common.as_json, facts, table)


def attention(
    run: PairRunFolder,
    /,
    *,
    shown: Positive = SHOWN,
    out: OutFile = None,
    options: SearchOptions,
    common: Common = Common(),
) -> None:
    """The attention of a model of pairs while it writes a target.

    The best target of every source, and the weight of each word of the source at each word of the target: a table on
    standard output, heat maps on the page.

    Args:
        shown: sources shown on the page
        out: the page (default: RUN/attention.html)
    """
    from elman.analysis.attention import entropy, write_attention_page

    page = require_file_name(out or run / "attention.html")
    loaded, result = search(run, options, common)
    found = result.best
    write_attention_page(page, f"{loaded.recipe.title} over {Path(result.name).name}", found, shown)
    pairs = [
        {"source": one.source, "target": [*one.words, "<eos>"], "weights": one.attention.tolist()} for one in found
    ]
    rows = [[" ".join(one.source), one.text, f"{entropy(one):.2f}"] for one in found[:shown]]
    table = (f"{run}: attention over {result.name}", ["source", "target", "entropy, bits"], rows)
    facts = {"run": str(run), "report": str(page), "pairs": pairs}
    show.print_result(common.as_json, facts, table, notes=[f"report: {page}"])
