"""Claims on headlines, translation and parsing: what they need, what they measure, where their runs are kept."""

import json

import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.network.build import build_model
from elman.study.claims import CLAIMS
from elman.study.conduct import nominal_minutes
from elman.study.measures import results
from elman.study.store import Store
from support.claims import row

ABOUT = {
    "headlines": ("model.output.contexts", "model.core.size", "model.encoder.size"),
    "reversed-source": ("data.reverse_source",),
    "reversed-source-attention": ("data.reverse_source",),
    "attention-translation": ("model.core",),
    "parsing": (),
    "parsing-attention": ("model.core",),
}
"""What the arms of each claim may differ in."""

OF_PAIRS = [claim for claim in CLAIMS.values() if claim.data is not None]


def pairs_file(folder, word="word"):
    lines = [f"a {word} {n} of the source\tthe {word} {n}" for n in range(4100)]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder / "pairs.tsv")


def test_the_claims_of_pairs_are_listed():
    assert {claim.name for claim in OF_PAIRS} == ABOUT.keys()


def test_arms_differ_in_what_the_claim_is_about_alone():
    for claim in OF_PAIRS:
        first, *others = (arm.small.at(1) for arm in claim.arms)
        for other in others:
            changed = config.changed_keys(first, other)
            assert all(key.startswith(ABOUT[claim.name]) for key in changed), claim.name


def test_the_arms_of_headlines_have_equal_weights_where_they_say_so():
    """Within one in a thousand at small scale."""
    count = {arm.label: weights(arm.small.at(1)) for arm in CLAIMS["headlines"].arms}
    assert count["EncDec, as many weights"] == pytest.approx(count["EncDec + DOC"], rel=1e-3)
    assert count["EncDec"] < count["EncDec + MoS"] < count["EncDec + DOC"]


def weights(recipe):
    with torch.device("meta"):
        model = build_model(recipe.model, recipe.data.max_vocabulary)
    return sum(parameter.numel() for parameter in model.parameters())


def test_a_claim_on_pairs_needs_data_of_its_own(tmp_path):
    for claim in OF_PAIRS:
        with pytest.raises(UserError, match=f"{claim.name} needs --data: .*docs/pairs.md"):
            Store(tmp_path / "out", None).plan(claim, "small", [1])
        assert 1 < nominal_minutes(claim, "small") < 600, claim.name


@pytest.mark.slow
def test_runs_are_kept_by_recipe_seed_and_pairs(tmp_path):
    claim = CLAIMS["headlines"]
    planned = Store(tmp_path / "out", pairs_file(tmp_path)).plan(claim, "small", [1, 2])
    folders = {run.folder for runs in planned.values() for run in runs}
    assert len(folders) == 8
    assert {run.recipe.data.corpus for runs in planned.values() for run in runs} == {str(tmp_path / "pairs.tsv")}
    other = Store(tmp_path / "out", pairs_file(tmp_path, "thing")).plan(claim, "small", [1, 2])
    assert not folders & {run.folder for runs in other.values() for run in runs}


def test_parallel_files_are_named_by_the_beginning_of_their_names(tmp_path):
    """A planned run is trained from its recipe, which names no file that exists."""
    for split in ("train", "dev", "test"):
        for language in ("ja", "en"):
            (tmp_path / f"little.{split}.{language}").write_text("a b\nb a\n")
    planned = Store(tmp_path / "out", str(tmp_path / "little")).plan(CLAIMS["reversed-source"], "small", [1])
    folders = {run.folder for runs in planned.values() for run in runs}
    assert len(folders) == 2
    with pytest.raises(UserError, match="which is not there"):
        Store(tmp_path / "out", str(tmp_path / "litt")).plan(CLAIMS["reversed-source"], "small", [1])


def test_output_is_read_from_the_results(tmp_path):
    rows = [row("valid", perplexity=9.0), row("test", perplexity=8.0)]
    names, rest = ("ROUGE-1", "ROUGE-2", "ROUGE-L"), {"low": None, "high": None}
    rows[1]["output"] = {
        "beam": 1,
        "copy_unknown": False,
        "measures": [{"name": name, "value": 30.0, **rest} for name in names],
        "baseline": [{"name": "ROUGE-1", "value": 20.0, **rest}],
        "baseline_name": "the first words",
    }
    adapted = row("test", method="dynamic")
    (tmp_path / "results.json").write_text(json.dumps([*rows, adapted]))
    figures = results(tmp_path).figures
    assert figures["test perplexity"] == 8.0
    assert figures["ROUGE-1"] == 30
    assert figures["ROUGE-1, baseline"] == 20
    assert set(CLAIMS["headlines"].measure.metrics) <= set(figures)
