"""elman translate and elman analyze attention: targets from a run on pairs, and where it looks meanwhile."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from elman.cli import progress, show, texts
from elman.cli.groups import Common, Machine
from elman.cli.options import (
    OutFile,
    OutText,
    PairRunFolder,
    Positive,
    TextFile,
    file_to_write,
    group,
    option,
    record_of,
)
from elman.config.inference import Beam
from elman.drawing.page import require_file_name
from elman.errors import UserError, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from elman.kinds.pairs.run import PairRun, Translation
    from elman.kinds.pairs.symbols import Unreadable

SHOWN = 20  # sources whose attention a page shows one by one


@group("Search", 2)
class SearchOptions:
    """How targets are searched for.

    Attributes:
        source: a UTF-8 text, one source per line, - is standard input; a blank line gives a blank line, and so does a
            source that is longer than data.max_source of the run or has no known symbol, which is reported.
        batch_size: sources searched side by side.
        copy: in place of <unk> write the source word that receives most attention.
        unk: allow <unk> to be written.
        unconstrained: of trees: let the model write any line; by default it writes only trees over all words of the
            source, unless the recipe has data.evaluation.constrained = false.
    """

    source: TextFile
    beam: Annotated[int | None, option("size", Beam())] = None
    nbest: Annotated[int | None, option("nbest", Beam())] = None
    length_penalty: Annotated[float | None, option("length_penalty", Beam())] = None
    coverage: Annotated[float | None, option("coverage", Beam())] = None
    max_length: Annotated[int | None, option("max_length", Beam())] = None
    batch_size: Positive = 32
    copy: bool = False
    unk: bool = False
    unconstrained: bool = False


class Found(NamedTuple):
    """The sources without line ends, the name of their file, the targets of each, and why some have none."""

    lines: list[str]
    name: str
    targets: "list[list[Translation]]"
    unread: "Mapping[int, Unreadable]"

    @property
    def best(self) -> "list[Translation]":
        """The best target of every source that is read."""
        return [candidates[0] for candidates in self.targets if candidates]


def search(folder: Path, options: SearchOptions, machine: Machine, drawn: str | None = None) -> "tuple[PairRun, Found]":
    """Open a run on pairs, read the sources and search; `drawn` is what asks for a drawing of the attention.

    Sources that are blank or not read are reported on standard error, and so are unknown symbols. Raises UserError
    where it is another kind of run, no source can be read, or options do not fit.
    """
    from elman.kinds.pairs.run import PairRun

    beam = record_of(Beam(), options)
    loaded = machine.open_as(PairRun, folder)
    if drawn is not None:
        loaded.require_attention(drawn)
    if options.unconstrained and loaded.options.form != "trees":
        raise UserError(f"--unconstrained is for trees, which {folder} does not write; leave it out")
    lines = [line.rstrip("\r\n") for line in texts.read_lines(options.source)]
    name = texts.shown_name(options.source)
    reader = loaded.reader(name, leave_out=True)
    found = loaded.translate(
        lines,
        beam,
        copy=options.copy,
        unknown=options.unk,
        constrained=False if options.unconstrained else None,
        batch_size=options.batch_size,
        reader=reader,
    )
    if blank := sum(not line.strip() for line in lines):
        verb = "is" if blank == 1 else "are"
        progress.log().print(f"{name}: {blank:,} of {counted(len(lines), 'line')} {verb} blank and not read")
    for line in reader.report():
        progress.log().print(line)
    return loaded, Found(lines, name, found, reader.unread)


def translate(
    run: PairRunFolder,
    /,
    *,
    out: OutText = None,
    attention: Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)] = None,
    options: SearchOptions,
    common: Common = Common(),
) -> None:
    """Write the target of every source: a translation, a headline, a tree.

    With --nbest each line has the number of the source, rank, score, log-probability and target, with tabs between.

    Args:
        out: the file to write (default: standard output)
        attention: also write a page, FILE.html, with heat maps of the attention of the first 20 targets
    """
    from elman.kinds.pairs.attention import write_attention_page

    loaded, found = search(run, options, common, None if attention is None else "--attention")
    if attention is not None:
        page = write_attention_page(attention, f"{loaded.recipe.title} over {Path(found.name).name}", found.best, SHOWN)
        progress.log().print(f"report: {page}")
    if common.as_json:
        rows = enumerate(zip(found.lines, found.targets, strict=True))
        text = show.json_line([_record(line, one, found.unread.get(place)) for place, (line, one) in rows]) + "\n"
    else:
        text = "".join(f"{line}\n" for line in _lines(found.targets, numbered=options.nbest is not None))
    show.write_or_print(out, text, counted(len(found.lines), "line"))


def _lines(found: "list[list[Translation]]", *, numbered: bool) -> list[str]:
    if not numbered:
        return [candidates[0].text if candidates else "" for candidates in found]
    return [
        f"{place}\t{rank}\t{one.score:.4f}\t{one.log_prob:.4f}\t{one.text}"
        for place, candidates in enumerate(found, start=1)
        for rank, one in enumerate(candidates, start=1)
    ]


def _record(line: str, candidates: "list[Translation]", unread: "Unreadable | None") -> dict[str, Any]:
    return ({} if unread is None else {"unread": str(unread)}) | {
        "source": line,
        "targets": [
            {"text": one.text, "words": one.words, "score": round(one.score, 4), "log_prob": round(one.log_prob, 4)}
            for one in candidates
        ],
    }


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
    from elman.kinds.pairs.attention import entropy, write_attention_page
    from elman.tasks.hub import fetched

    page = require_file_name(out or fetched(run) / "attention.html")
    loaded, result = search(run, options, common, "elman analyze attention")
    found = result.best
    write_attention_page(page, f"{loaded.recipe.title} over {Path(result.name).name}", found, shown)
    pairs = [
        {"source": one.source, "target": [*one.words, "<eos>"], "weights": one.attention.tolist()} for one in found
    ]
    rows = [[" ".join(one.source), one.text, f"{entropy(one):.2f}"] for one in found[:shown]]
    table = (f"{run}: attention over {result.name}", ["source", "target", "entropy, bits"], rows)
    facts = {"run": str(run), "report": str(page), "pairs": pairs}
    show.print_result(common.as_json, facts, table, notes=[f"report: {page}"])
