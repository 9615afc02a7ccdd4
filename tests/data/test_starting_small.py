"""Starting small: the windows of each epoch."""

import numpy as np
import pytest

from elman import config
from elman.data.starting_small import ForgetfulWindows, StagedWindows, stage_of, training_windows
from elman.data.windows import TrainingWindows
from elman.errors import UserError
from support.text_runs import recipe

TOKENS = np.arange(200, dtype=np.int32)


def test_a_forgetful_epoch_covers_every_step_once_and_starts_afresh():
    windows = ForgetfulWindows(TrainingWindows(TOKENS, 4, 10), (3, 4), seed=1)
    spans = windows.spans(0)
    assert [span.start for span in spans] == np.cumsum([0, *(span.length for span in spans[:-1])]).tolist()
    assert sum(span.length for span in spans) == 49
    assert {span.length for span in spans[:-1]} == {3, 4}
    assert windows.spans(0) == spans != windows.spans(1)
    assert all(windows.batch(span).fresh.all() for span in spans)


def test_stages_follow_each_other():
    parts = [TrainingWindows(TOKENS[:100], 4, 10), TrainingWindows(TOKENS[100:], 4, 10)]
    windows = StagedWindows(lambda epoch: parts[stage_of([2, 1], epoch)])
    first = [int(windows.batch(windows.spans(epoch)[0]).inputs[0, 0]) for epoch in range(4)]
    assert first == [0, 0, 100, 100]
    assert {span.epoch for span in windows.spans(3)} == {3}


def test_a_recipe_says_how(tmp_path):
    plain = recipe(window={"length": 10})
    assert isinstance(training_windows(plain, TOKENS, tmp_path, None), TrainingWindows)
    grown = recipe(window={"length": 10}, memory=[{"epochs": 1, "words": [3, 4]}])
    windows = training_windows(grown, TOKENS, tmp_path, None)
    assert len(windows.spans(0)) > 10 > len(windows.spans(1)) == 5
    raw = {**tables(plain), "data": {"kind": "text", "grammar": {"stages": [{"epochs": 1, "complex": 0.0}]}}}
    staged = config.parse_recipe(raw, "staged")
    with pytest.raises(UserError, match=r"names 1 stages, but this text was not made by them; leave out --data"):
        training_windows(staged, TOKENS, tmp_path, None)


def test_mistakes_in_a_recipe():
    raw = tables(recipe())
    for data, message in (
        ({"corpus": "ptb", "grammar": {}}, "both corpus and grammar name the text"),
        ({"grammar": {"complex": 2}}, "data.grammar.complex = 2"),
        ({"grammar": {"stages": [{"epochs": 1}]}}, "the key data.grammar.stages[0].complex is missing"),
    ):
        with pytest.raises(UserError) as error:
            config.parse_recipe({**raw, "data": {"kind": "text", **data}}, "r.toml")
        assert message in str(error.value)
    with pytest.raises(UserError, match="the lesser number stands first"):
        recipe(memory=[{"words": [4, 3]}])


def tables(made):
    import tomllib

    return tomllib.loads(config.dump_recipe(made))
