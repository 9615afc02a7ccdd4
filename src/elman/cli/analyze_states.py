"""elman analyze words, trajectory and letters: what hidden states say of words, after Elman (1990, 1991)."""

from typing import TYPE_CHECKING, Literal

from elman.cli import progress, show, texts
from elman.cli.groups import Common, SplitOptions
from elman.cli.options import OutFile, Positive, Strings, TextRunFolder
from elman.errors import UserError, notice

if TYPE_CHECKING:
    from elman.data.windows import EvaluationWindows
    from elman.tasks.text.run import TextRun

COMPONENTS_FROM = 20_000
"""Tokens of a split whose states give the principal components, by default."""


def words(
    run: TextRunFolder,
    /,
    *,
    words: Strings = (),
    top: Positive = 60,
    least: Positive = 3,
    layer: int | None = None,
    method: Literal["average", "complete", "single", "ward"] = "average",
    metric: Literal["euclidean", "cosine"] = "euclidean",
    groups: Positive = 4,
    split: SplitOptions = SplitOptions(),
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """Cluster words by the hidden states that follow them, and draw the tree.

    The state after a word is averaged over all its places in a split; words are near each other if the network expects
    similar things after them (Elman 1990). The page has the dendrogram.

    Args:
        words: the words to cluster (default: the most frequent ones of the split)
        top: how many of the most frequent words
        least: leave out words that the split has fewer times
        layer: 0 is the input vectors, 1 the first layer (default: the last)
        method: how the distance of two groups follows from those of their words
        metric: the distance of two words
        groups: cut the tree into so many groups at most, which are printed
        out: the page (default: RUN/words.html)
    """
    from elman.analysis.words import cluster, word_states, write_words_page

    loaded = common.open_text(run)
    level, name = _level(loaded, layer)
    vocabulary, (windows, source) = loaded.vocabulary, _windows(loaded, split)
    with progress.counting(f"reading {source}") as advance:
        states = word_states(loaded.model, windows, level, len(vocabulary), advance)
    if unknown := [word for word in words if word not in vocabulary.ids]:
        raise UserError(f"--words: {', '.join(unknown)}: not in the vocabulary of {run}")
    frequent = sorted(range(len(vocabulary)), key=lambda symbol: -int(states.counts[symbol]))[:top]
    wanted = [vocabulary.ids[word] for word in dict.fromkeys(words)] if words else frequent
    chosen = [symbol for symbol in wanted if states.counts[symbol] >= least]
    if len(chosen) < 2:
        raise UserError(f"{len(chosen)} of the words occur {least} times or more in {source}; lower --least")
    if words and (rare := [vocabulary.words[symbol] for symbol in wanted if symbol not in chosen]):
        notice(f"left out, with fewer than {least} occurrences in {source}: {', '.join(rare)}")
    names = [vocabulary.words[symbol] for symbol in chosen]
    found = cluster(
        names, states.means[chosen], states.counts[chosen].tolist(), method=method, metric=metric, groups=groups
    )
    distance = f"{metric} distance, {method}"
    page = write_words_page(
        out or loaded.path / "words.html", found, run=str(run), text=source, level=name, distance=distance
    )
    facts = {
        "run": str(run),
        "text": source,
        "level": level,
        "method": method,
        "metric": metric,
        "words": [
            {"word": word, "count": count, "group": group}
            for word, count, group in zip(found.words, found.counts, found.groups, strict=True)
        ],
        "merges": found.merges.tolist(),
        "given": found.given,
        "report": str(page),
    }
    rows = [[str(number), " ".join(members)] for number, members in enumerate(found.members(), start=1)]
    table = (f"{run}: words by the states of {name}", ["group", "words"], rows)
    show.print_result(common.as_json, facts, table, notes=[f"report: {page}"])


def trajectory(
    run: TextRunFolder,
    sentences: tuple[str, ...],
    /,
    *,
    layer: int | None = None,
    max_tokens: Positive = COMPONENTS_FROM,
    split: SplitOptions = SplitOptions(),
    reading: texts.ReadingOptions = texts.ReadingOptions(),
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """Draw the path of the hidden state along sentences, in the plane of its principal components.

    Each sentence begins afresh. Several are drawn together, so that their paths can be compared (Elman 1991).

    Args:
        sentences: texts, such as "boy who sees girls hears"
        layer: 0 is the input vectors, 1 the first layer (default: the last)
        max_tokens: how many tokens of the split the components are computed from
        out: the page (default: RUN/trajectory.html)
    """
    import numpy as np

    from elman.analysis.agreement import principal_components
    from elman.analysis.embedding import states_of
    from elman.analysis.trajectories import write_trajectories_page
    from elman.analysis.words import states_along

    loaded = common.open_text(run)
    level, name = _level(loaded, layer)
    windows, source = _windows(loaded, split, max_tokens)
    if len(windows.tokens) < 2:
        raise UserError(f"{source}: the states after a single token have no components; read more, with --max-tokens")
    components = principal_components(list(states_along(loaded.model, windows, level)))
    reader = reading.reader(loaded, "the sentences")
    walks = []
    for sentence in sentences:
        parts = list(states_of(loaded, loaded.reading(sentence, reader), [level], document=True))
        tokens = [token for words, _, _ in parts for token in words]
        if not tokens:
            raise UserError(f"no token that the model could read in {sentence!r}")
        walks.append((tokens, np.concatenate([states[0] for _, _, states in parts])))
    texts.report(reader)
    described = f"the first {len(windows.tokens):,} tokens of {source}"
    page = write_trajectories_page(
        out or loaded.path / "trajectory.html", components, walks, run=str(run), level=name, text=described
    )
    facts = {
        "run": str(run),
        "level": level,
        "shares": components.shares.tolist(),
        "sentences": [
            {"tokens": tokens, "components": components.project(states).tolist()} for tokens, states in walks
        ],
        "report": str(page),
    }
    rows = [
        [token, *(f"{value:.3f}" for value in point)]
        for tokens, states in walks
        for token, point in zip(tokens, components.project(states), strict=True)
    ]
    shares = enumerate(components.shares, start=1)
    header = ["token", *(f"component {place} ({100 * share:.0f} %)" for place, share in shares)]
    show.print_result(common.as_json, facts, (f"{run}: {name}", header, rows), notes=[f"report: {page}"])


def letters(
    run: TextRunFolder, /, *, split: SplitOptions = SplitOptions(), out: OutFile = None, common: Common = Common()
) -> None:
    """Where words begin, by the surprisal of letters: for a run on characters.

    The surprisal of a letter falls along a word and is highest where a new word begins (Elman 1990, Fig. 6). The page
    has the mean by place in the word, and the beginning of the text letter by letter.

    Args:
        out: the page (default: RUN/letters.html)
    """
    from elman.analysis.letters import by_place, write_letters_page

    loaded = common.open_text(run)
    windows, source = _windows(loaded, split)
    with progress.counting(f"reading {source}") as advance:
        found = by_place(loaded, windows, advance)
    page = write_letters_page(out or loaded.path / "letters.html", found, run=str(run), text=source)
    facts = {
        "run": str(run),
        "text": source,
        "places": [place._asdict() for place in found.places],
        "area": found.area,
        "report": str(page),
    }
    rows = [[place.label, f"{place.letters:,}", f"{place.bits:.3f}"] for place in found.places]
    table = (f"{run}: surprisal by place in the word", ["letter", "count", "bits"], rows)
    show.print_result(common.as_json, facts, table, notes=[found.verdict, f"report: {page}"])


def _level(loaded: "TextRun", layer: int | None) -> tuple[int, str]:
    from elman.analysis.embedding import num_layers

    last = num_layers(loaded) - 1
    if layer is not None and not 0 <= layer <= last:
        raise UserError(f"--layer {layer}: this model has the layers 0 (the input vectors) to {last}")
    level = last if layer is None else layer
    return level, "the input vectors" if level == 0 else "the last layer" if level == last else f"layer {level}"


def _windows(loaded: "TextRun", split: SplitOptions, max_tokens: int | None = None) -> "tuple[EvaluationWindows, str]":
    from elman.data.windows import EvaluationWindows

    split.say_part(loaded)
    corpus = loaded.corpus(split.data)
    part = corpus.split(split.split)
    if not len(part.tokens):
        raise UserError(f"the {split.split} split of {corpus.source} has no tokens; choose another with --split")
    windows = EvaluationWindows(part.tokens[:max_tokens], loaded.first, streams=split.streams)
    return windows, f"the {split.split} split of {corpus.source}"
