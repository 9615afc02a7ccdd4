"""elman analyze words, trajectory, letters and units: what hidden states say of words (Elman 1990, 1991)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from cyclopts import Parameter

from elman.cli import progress, show, texts
from elman.cli.groups import Common, SplitOptions
from elman.cli.options import OutFile, Positive, Strings, TextRunFolder, Whole
from elman.data.text.reading import TextReader
from elman.data.text.vocabulary import EOS
from elman.errors import UserError, notice

if TYPE_CHECKING:
    from elman.data.windows import EvaluationWindows
    from elman.tasks.text.run import TextRun

COMPONENTS_FROM = 20_000  # tokens of a split whose states give the principal components, by default


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
        method: how the distance of two groups follows from the distances of their words
        metric: the distance of two words
        groups: cut the tree into at most this number of groups, which are printed
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


def units(
    run: TextRunFolder,
    phrase: str | None = None,
    /,
    *,
    unit: Annotated[tuple[Whole, ...], Parameter(consume_multiple=1)] = (),
    pattern: str | None = None,
    top: Positive = 10,
    width: Whole = 8,
    threshold: float = 1.0,
    layer: int | None = None,
    max_tokens: Positive = 100_000,
    split: SplitOptions = SplitOptions(),
    reading: texts.ReadingOptions = texts.ReadingOptions(),
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """Where units of the state are most active, and which are on along a phrase or at some words.

    With --unit the places of a split where these units are highest. With a phrase, a part of which may be marked as in
    "the boy [who Mary chases] feeds", the units that are on throughout it and off before and after, then those that
    are highest there, and the places of the split where the same units are on (LSTMVis). With --pattern the units
    that are higher at the tokens that match than elsewhere. Values are in standard deviations above the mean of a unit
    over the split, whose first tokens are left out. The page has all places, shaded by the values.

    Args:
        phrase: a text, its range between [ and ] (default: all of it)
        unit: numbers of units, from 0
        pattern: a regular expression that whole tokens match, such as "[0-9]+"
        top: how many places, and how many units
        width: tokens before and after a place
        threshold: standard deviations above its mean from which a unit is on
        layer: 0 is the input vectors, 1 the first layer (default: the last)
        max_tokens: how many tokens of the split are searched
        out: the page (default: RUN/units.html)
    """
    import re

    from elman.analysis import units as search

    if phrase is None and pattern is None and not unit:
        raise UserError('nothing to search for: give --unit N, a phrase such as "the [old man] said", or --pattern')
    loaded = common.open_text(run)
    level, name = _level(loaded, layer)
    windows, source = _windows(loaded, split, max_tokens)
    with progress.counting(f"reading {source}") as advance:
        states = search.values_along(loaded.model, windows, level, advance)
    tokens, blank = loaded.vocabulary.decode(windows.tokens), "" if loaded.options.spelt else " "
    scale = search.Scale.of(states)
    values, size = scale.apply(states), states.shape[1]
    if wrong := [one for one in unit if one >= size]:
        raise UserError(f"--unit {wrong[0]}: {name} of this model has the units 0 to {size - 1}")
    found, parts, length = list[search.Found](), list[tuple[str, list[search.Context]]](), 1

    def places(heading: str, members: Sequence[int], score: np.ndarray) -> None:
        at = search.places_of(score, top, max(1, width))
        means = values[:, members].mean(1)
        parts.append((heading, [search.context(tokens, means, place, length, width) for place in at]))

    for one in unit:
        places(f"unit {one}", [one], values[:, one])
    if phrase is not None:
        reader = reading.reader(loaded, "the phrase")
        before = windows.tokens[: search.settled(states)].tolist()
        along, start, stop = _marked(loaded, phrase, reader, level, before)
        texts.report(reader)
        found, length = search.units_on(scale.apply(along), start, stop, threshold)[:top], stop - start
        members = [one.unit for one in found if one.switches] or [one.unit for one in found]
        if length <= len(values):
            heading = f"as along the phrase: units {', '.join(map(str, members))}"
            places(heading, members, search.together(values, members, length, threshold))
    if pattern is not None:
        try:
            matching = np.array([re.fullmatch(pattern, token) is not None for token in tokens[: len(values)]])
        except re.error as error:
            raise UserError(f"--pattern {pattern!r}: no regular expression ({error})") from None
        if matching.all() or not matching.any():
            which = "all tokens match" if matching.all() else "no token matches"
            raise UserError(f"--pattern {pattern!r}: {which} in {source}")
        found, length = search.units_apart(values, matching)[:top], 1
        for number in [one.unit for one in found[:3]]:
            places(f"unit {number}", [number], values[:, number])
    page = search.write_units_page(
        out or loaded.path / "units.html", parts, run=str(run), level=name, text=source, blank=blank
    )
    facts = {
        "run": str(run),
        "text": source,
        "level": level,
        "units": [one._asdict() for one in found],
        "places": {heading: [one._asdict() for one in contexts] for heading, contexts in parts},
        "report": str(page),
    }
    tables: list[show.Table] = []
    if found:
        what = "deviations above its mean" if pattern is None else "deviations above other tokens"
        marks = ([str(one.unit), f"{one.mean:+.2f}", "yes" if one.switches else ""] for one in found)
        tables.append((f"{run}: units of {name}", ["unit", what, "switches on"], list(marks)))
    for heading, contexts in parts:
        rows = [[f"{one.first + one.start:,}", f"{one.peak:+.2f}", one.text(blank)] for one in contexts]
        tables.append((f"{heading}, in {source}", ["token", "value", "context"], rows))
    show.print_result(common.as_json, facts, *tables, notes=[f"report: {page}"])


def _marked(
    loaded: "TextRun", phrase: str, reader: TextReader, level: int, first: Sequence[int]
) -> tuple[np.ndarray, int, int]:
    """The states after the tokens of a phrase, and the first token of its range and the one after the last.

    The phrase is read after some ids, since states at the beginning are unlike states within a text.
    """
    from elman.analysis.embedding import states_of

    def read(text: str) -> tuple[list[str], list[np.ndarray]]:
        if not text.strip():
            return [], []
        found = list(states_of(loaded, loaded.reading(text, reader), [level], document=True, before=first))
        words = [word for tokens, _, _ in found for word in tokens]
        return words[: len(words) - (words[-1:] == [EOS])], [states[0] for _, _, states in found]

    before, bracket, rest = phrase.partition("[")
    inside, close, after = rest.partition("]") if bracket else (phrase, "]", "")
    if not close or not inside.strip() or any(one in after for one in "[]"):
        raise UserError(f'{phrase!r}: one range between [ and ] is marked, such as "the [old man] said"')
    before = before if bracket else ""
    start, stop = len(read(before)[0]), len(read(before + inside)[0])
    words, states = read(before + inside + after)
    if not start < stop <= len(words):
        raise UserError(f"no token that the model could read in {inside.strip()!r}")
    return np.concatenate(states)[: len(words)], start, stop


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
