import numpy as np

from elman.evaluation.scoring import Unknown

LOG_PROBS, FLAGS = np.array([-1.0, -2.0], dtype=np.float32), [False, True]


def test_unknown_words_are_scored_excluded_or_spread():
    assert Unknown().apply(LOG_PROBS, FLAGS) is LOG_PROBS
    np.testing.assert_array_equal(Unknown(treatment="exclude").apply(LOG_PROBS, FLAGS), [-1, np.nan])
    spread = Unknown(treatment="spread", types=4).apply(LOG_PROBS, FLAGS)
    np.testing.assert_allclose(spread, [-1, -2 - np.log(4)], rtol=1e-6)
    np.testing.assert_array_equal(LOG_PROBS, [-1, -2])


def test_what_is_spread_sums_to_what_there_was():
    spread = Unknown(treatment="spread", types=5).apply(LOG_PROBS, FLAGS)
    assert abs(5 * np.exp(spread[1]) - np.exp(-2)) < 1e-6
