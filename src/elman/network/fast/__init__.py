"""Everything that is done for speed, and its precision: products, recurrences and likelihoods.

A module of a recurrence has `scan`, which equals the loop over the step of its cell (`network/cells`), the naive form;
one of an output has `nll` or `log_prob`, which equal the negative logarithms of `log_probs` (`network/output`). Which
of several ways is taken is decided in `policy.py` alone.
"""
