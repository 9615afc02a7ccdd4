"""The records of the repository: verdicts and p-values follow from the figures beside them, and the page from them."""

import json
import math
import re
from pathlib import Path

import pytest

from elman.files import canonical_json, sha256_lines
from elman.study.claims import CLAIMS
from elman.study.record import judged_again, read_record, rejudged

ROOT = Path(__file__).parents[3]
RECORDS = sorted((ROOT / "results" / "claims").glob("*.json"))
PAGE = (ROOT / "results" / "claims.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_figures_of_a_record_give_its_p_values_again(path):
    """To the digits that were kept; a ratio that is bounded today was undecided before there were bounds."""
    made = read_record(path)
    for row in judged_again(made, CLAIMS[made.name]):
        assert row.answer_again in (row.answer, None), row.statement
        if row.p is not None and row.p_again is not None:
            assert math.isclose(row.p, row.p_again, rel_tol=0.05, abs_tol=1e-5), row.statement
    verdict = re.escape(rejudged(made).verdict)
    assert re.search(rf"^\| \[{made.name}\].* \| {verdict} \|$", PAGE, re.MULTILINE)


def test_a_plan_has_the_digest_of_what_was_planned():
    plans = [plan for path in RECORDS for plan in read_record(path).plans if plan.digest]
    assert plans
    for plan in plans:
        assert sha256_lines(canonical_json(plan.content)) == plan.digest
        assert plan.content["seeds"] == plan.seeds


def test_records_name_no_place_on_a_machine_and_the_page_counts_them():
    for path in RECORDS:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'": "/|"/\w+/', text), path.name
    counts = [int(number) for number in re.findall(r": (\d+)", PAGE.split("scale: ")[1].split(".")[0])]
    small = sum(claim.has("small") for claim in CLAIMS.values())
    assert sum(counts) == small
    lacking = re.search("^Not run: (.*)$", PAGE, re.MULTILINE)
    assert len(RECORDS) == small - (0 if lacking is None else lacking[1].count("`") // 2)
    assert all(json.loads(path.read_text())["name"] == path.stem for path in RECORDS)
