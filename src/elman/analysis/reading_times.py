"""Reading times regressed on surprisal: mixed-effects models (statsmodels), and what each model of text adds.

The reading time of a word is linear in the surprisal of the word and of those before it (Smith & Levy 2013, The effect
of word predictability on reading time is logarithmic, Cognition 128). A model of text is judged by how much its
surprisal adds to the log-likelihood per time of a regression without it (Goodkind & Bicknell 2018, CMCL), here also of
items that were left out, by the regression on the others.
"""

import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, stats

from elman.analysis.by_word import word_rows
from elman.data.reading_times import Floats, Places, ReadingTimes, Word
from elman.data.text.vocabulary import EOS
from elman.errors import UserError, counted, notice
from elman.evaluation.paired import holm
from elman.evaluation.scoring import Unknown
from elman.evaluation.statistics import compare
from elman.jobs import Advance, advancing
from elman.tasks.text.model import TextModel
from elman.tasks.text.run import TextRun

SURPRISAL, BASELINE = "surprisal", "baseline"
"""The predictor of the word itself, and the regression without any."""

BLOCK = 1 << 23
"""Numbers of the design that are held at once."""


class Measured(NamedTuple):
    """The words of texts under a model.

    Attributes:
        surprisal: in bits, NaN where there is none, [n].
        unknown: whether the model lacks each, [n].
        counts: how often its training text has each, [n]; None where it does not know.
    """

    surprisal: Floats
    unknown: np.ndarray
    counts: Floats | None


def measure(
    model: TextModel, words: Sequence[Word], name: str, *, sentences: bool, word_ends: bool, exclude: bool
) -> Measured:
    """Score the words of texts, each in the context of its sentence, or of all its text before it.

    What the table has as one word may be several to the model: their surprisals are summed. Raises UserError where the
    model reads other words.
    """
    breaks = [
        number
        for number, word in enumerate(words)
        if not number or word.text != words[number - 1].text or (sentences and word.begins)
    ]
    parts = [words[begin:end] for begin, end in zip(breaks, [*breaks[1:], len(words)], strict=True)]
    # Between sentences a run has read the end of a line; other models have blanks there.
    mark = "\n" if isinstance(model, TextRun) and model.options.eos in ("line", "exact") else " "
    texts = ["".join(f"{mark if word.begins else ' '}{word.written}" for word in part).strip() for part in parts]
    reader = model.reader(name, leave_out=exclude, cure="take it out, or add --unknown exclude")
    read = model.as_read(reader.complete(text, number) for number, text in enumerate(texts, start=1))
    unknown = Unknown(treatment="exclude" if exclude else "score")
    bits, lacking, counts = list[float](), list[bool](), list[float]()
    for number, ((sentence, found), part) in enumerate(zip(model.predict_text(read), parts, strict=True), start=1):
        rows = [
            row for row in word_rows(model, number, sentence, found, unknown, word_ends=word_ends) if row.word != EOS
        ]
        sizes = [len(word.written.split()) for word in part]
        if sum(sizes) != len(rows):
            raise UserError(
                f"{name}: {model.path} reads {len(rows):,} words where the text of item {part[0].item!r} has"
                f" {sum(sizes):,} ({texts[number - 1][:40]!r}); its words cannot be joined to the times"
            )
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            own = rows[end - size : end]
            bits.append(sum(np.nan if row.surprisal is None else row.surprisal for row in own))
            lacking.append(any(row.unknown for row in own))
            counts.append(min(row.frequency or 0 for row in own))
    return Measured(np.array(bits), np.array(lacking), np.array(counts, np.float64) if model.counts else None)


def frequencies(words: Sequence[Word], counts: Mapping[str, float]) -> Floats:
    """How often a list has each word: as written, else without its marks, else in lower case; 0 where it has none."""
    found = list[float]()
    for word in words:
        inner = word.written.strip("".join(one for one in word.written if not one.isalnum()))
        forms = (word.written, inner, inner.lower())
        found.append(next((counts[form] for form in forms if form in counts), 0.0))
    return np.array(found)


def lagged(values: Floats, words: Sequence[Word], lag: int) -> Floats:
    """The values [n] of the words that are `lag` places before in the same text; NaN where there is none."""
    text, found = np.array([word.text for word in words]), np.full(len(values), np.nan)
    found[lag:] = np.where(text[lag:] == text[: len(text) - lag], values[: len(values) - lag], np.nan)
    return found


class Term(NamedTuple):
    """Random effects of one variance: the level of each time [n], and what its effect is multiplied by [n]."""

    name: str
    level: Places
    by: Floats


class Fit(NamedTuple):
    """A regression: what it found of predictors x [k], the intercept first, and of q random effects.

    Attributes:
        log_likelihood: at its maximum (no REML), nats.
        coefficients, errors: of the predictors as they were given, [k].
        variances: of the random effects, by term; `residual` of the rest.
        random: the conditional means of the random effects, [q].
        unseen: the variances of the random effects that no time of the fit has, 0 for the others, [q].
    """

    log_likelihood: float
    coefficients: Floats
    errors: Floats
    variances: dict[str, float]
    residual: float
    random: Floats
    unseen: Floats

    def expected(self, x: Floats, z: Any) -> Floats:
        """The time that is expected of each row, [n]."""
        return x @ self.coefficients + z @ self.random

    def log_density(self, x: Floats, z: Any, y: Floats) -> Floats:
        """The log-density (nats) of each time [n], whose items and readers may be new."""
        spread = np.sqrt(self.residual + z.power(2) @ self.unseen)
        return np.asarray(stats.norm.logpdf(y, self.expected(x, z), spread))


def random_design(terms: Sequence[Term]) -> Any:
    """The sparse matrix [n, q] of random effects, term by term."""
    rows = np.arange(len(terms[0].level))
    return sparse.hstack([sparse.csr_array((term.by, (rows, term.level))) for term in terms], format="csr")


def fit(x: Floats, z: Any, y: Floats, terms: Sequence[Term]) -> Fit:
    """Fit a mixed-effects model by maximum likelihood with `MixedLM` of statsmodels.

    Its likelihood depends on x, z and y through products of their columns alone. It is therefore given the triangle R
    of [z x y] = Q R, which has them all, in place of n rows, and n.
    """
    try:
        from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec
    except ImportError:
        raise UserError("reading times need the package statsmodels: pip install 'elman[reading]'") from None
    (count, width), seen = x.shape, np.asarray(abs(z).sum(axis=0)).ravel() > 0
    term = np.repeat(np.arange(len(terms)), [int(one.level.max()) + 1 for one in terms])
    z, sizes = z[:, seen], np.bincount(term[seen])
    mean, scale = x.mean(axis=0), x.std(axis=0)
    mean[0], scale[0] = 0.0, 1.0
    if not (scale > 0).all() or np.linalg.matrix_rank((x - mean) / scale) < width:
        raise UserError(
            "a predictor is constant, or the sum of others, among the times that are used, which are of"
            f" {len(np.unique(x, axis=0)):,} different words for {width} coefficients; use more text, or fewer"
            " predictors (--spill-over 0) or models"
        )
    triangle, columns = np.zeros((0, z.shape[1] + width + 1)), z.shape[1]
    step = max(triangle.shape[1], BLOCK // triangle.shape[1])
    for at in range(0, count, step):
        part = slice(at, at + step)
        block = np.column_stack([z[part].toarray(), (x[part] - mean) / scale, y[part]])
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, block]), mode="r"))
    ends = np.cumsum(sizes)
    matrices = [[triangle[:, end - size : end]] for end, size in zip(ends, sizes, strict=True)]
    names = [[[str(one) for one in range(size)]] for size in sizes]
    spec = VCSpec([one.name for one in terms], names, matrices)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MixedLM(triangle[:, -1], triangle[:, columns:-1], np.zeros(len(triangle)), exog_vc=spec)
        model.n_totobs = count
        try:
            # By gradients it stops early where a variance is near 0.
            found = model.fit(reml=False, method=["powell", "lbfgs"], ftol=1e-10)
        except np.linalg.LinAlgError:
            raise UserError("the regression has no maximum that can be found; leave out random effects") from None
        random = np.asarray(found.random_effects[0.0])
    if not found.converged:
        notice("a regression has not converged; take its figures with care, or leave out random effects")
    back = np.diag(1 / scale)
    back[0] -= mean / scale
    # The block of the fixed effects, since the whole has no inverse where a variance is 0.
    curvature, _ = model.hessian(found.params_object)
    covariance = back @ np.linalg.inv(-curvature[:width, :width]) @ back.T
    variances = np.asarray(found.vcomp)
    every = np.zeros(len(seen))
    every[seen] = random
    return Fit(
        log_likelihood=float(found.llf),
        coefficients=back @ np.asarray(found.fe_params),
        errors=np.sqrt(np.diag(covariance)),
        variances={one.name: float(value) for one, value in zip(terms, variances, strict=True)},
        residual=float(found.scale),
        random=every,
        unseen=np.where(seen, 0.0, variances[term]),
    )


def lags_of(name: str, values: Floats, words: Sequence[Word], lags: int) -> dict[str, Floats]:
    """A predictor [n] of words and of those before them, by name."""
    return {name: values} | {f"{name}, {lag} before": lagged(values, words, lag) for lag in range(1, lags + 1)}


def choose(
    times: ReadingTimes, predictors: Iterable[Floats], lags: int, lowest: float, highest: float
) -> tuple[np.ndarray, dict[str, int]]:
    """Which times [n] are used, and how many are left out for which reason, the first that holds."""
    early = np.asarray(np.isnan(lagged(np.zeros(len(times.words)), times.words, lags)))
    lacks = np.asarray(np.isnan(np.column_stack(list(predictors))).any(axis=1))
    reasons: dict[str, Any] = {
        "missing": np.isnan(times.time),
        f"outside {lowest:g} to {highest:g}": ~((times.time >= lowest) & (times.time <= highest)),
        f"with fewer than {counted(lags, 'word')} before in the text": early[times.word],
        "of words that a model lacks, or after one": lacks[times.word],
    }
    used, left = np.full(len(times.time), fill_value=True), dict[str, int]()
    for reason, holds in reasons.items():
        left[reason] = int((used & holds).sum())
        used &= ~holds
    return used, {reason: number for reason, number in left.items() if number}


class Regression(NamedTuple):
    """A regression to be made: its predictors [n] by name, without the intercept, and its random effects."""

    predictors: dict[str, Floats]
    terms: list[Term]

    @property
    def x(self) -> Floats:
        """The predictors [n, k], the intercept first."""
        return np.column_stack([np.ones(len(self.terms[0].level)), *self.predictors.values()])

    def fitted(self, y: Floats) -> Fit:
        """The regression of all times."""
        return fit(self.x, random_design(self.terms), y, self.terms)

    def held_out(self, y: Floats, folds: Sequence[np.ndarray]) -> Floats:
        """The log-density of each time [n] by the regression of the other folds, whose masks [n] these are."""
        x, z, found = self.x, random_design(self.terms), np.full(len(y), np.nan)
        for inside in folds:
            others = fit(x[~inside], z[~inside], y[~inside], self.terms)
            found[inside] = others.log_density(x[inside], z[inside], y[inside])
        return found

    def summary(self, found: Fit) -> dict[str, Any]:
        """The fit in plain values, its effects tested by the normal distribution."""
        z = found.coefficients / found.errors
        columns = (found.coefficients, found.errors, z, 2 * stats.norm.sf(abs(z)))
        names, heads = ["intercept", *self.predictors], ("estimate", "error", "z", "p_value")
        effects = [
            {"name": name, **dict(zip(heads, map(float, row), strict=True))}
            for name, *row in zip(names, *columns, strict=True)
        ]
        return {
            "log_likelihood": found.log_likelihood,
            "effects": effects,
            "variances": {**found.variances, "residual": found.residual},
        }


def folds_of(items: Sequence[str], count: int, seed: int) -> list[np.ndarray]:
    """Masks [n] of the times of the items of each fold; items are dealt out at random."""
    names, place = np.unique(np.array(items), return_inverse=True)
    if len(names) < 2:
        raise UserError(
            "cross-validation leaves items out, and there is one; name their column (--columns item=HEADING), or add"
            " --folds 0"
        )
    fold = np.random.default_rng(seed).permutation(len(names)) % min(count, len(names))
    return [fold[place] == number for number in range(fold.max() + 1)]


def by_item(
    items: Sequence[str], densities: Mapping[str, Floats], pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Paired t tests of log-densities [n] on the means of the items; a positive difference favours the second one."""
    _, place = np.unique(np.array(items), return_inverse=True)
    means = {name: np.bincount(place, found) / np.bincount(place) for name, found in densities.items()}
    found = [compare(means[a], means[b], block=1) for a, b in pairs]
    adjusted = holm([one.p_value for one in found])
    return [
        {
            "a": a,
            "b": b,
            "difference": one.difference,
            "low": one.low,
            "high": one.high,
            "p_value": one.p_value,
            "p_holm": p,
        }
        for (a, b), one, p in zip(pairs, found, adjusted, strict=True)
    ]


def analyse(
    baseline: Regression,
    models: Mapping[str, Regression],
    y: Floats,
    items: Sequence[str],
    folds: int,
    seed: int,
    advance: Advance = None,
) -> tuple[dict[str, Any], dict[str, Fit]]:
    """Fit all regressions of times y [n], and leave items out: what is found in plain values, and the fits by name.

    `delta` is what a model adds to the log-likelihood of the baseline in nats per time. Of items that are left out,
    which `folds` of 0 does not do, the means of the items are compared; p-values are two-sided, Holm's over the models
    and over their pairs.
    """
    every = {BASELINE: baseline, **models}
    parts = folds_of(items, folds, seed) if folds else []
    fits, densities = dict[str, Fit](), dict[str, Floats]()
    for name, one in advancing(every.items(), len(every), advance):
        fits[name] = one.fitted(y)
        if parts:
            densities[name] = one.held_out(y, parts)
    rows = []
    for name, one in models.items():
        more = fits[name].log_likelihood - fits[BASELINE].log_likelihood
        added = len(one.predictors) - len(baseline.predictors) + len(one.terms) - len(baseline.terms)
        test = {"chi2": 2 * more, "df": added, "p_value": float(stats.chi2.sf(max(0.0, 2 * more), added))}
        rows.append({"model": name, "delta": more / len(y), **test, **one.summary(fits[name])})
    held = by_item(items, densities, [(BASELINE, name) for name in models]) if parts else []
    pairs = by_item(items, densities, list(itertools.combinations(models, 2))) if parts else []
    facts = {"baseline": baseline.summary(fits[BASELINE]), "models": rows, "held_out": held, "pairs": pairs}
    return facts, fits
