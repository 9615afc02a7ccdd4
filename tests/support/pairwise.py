"""Cases over several options in which every pair of values occurs, or every value, instead of every combination."""

from itertools import combinations

import pytest

MARKED = type(pytest.param())
"""A value with marks of its own."""


def every_pair(**options):
    """The parametrisation by `options` in which any two values of two options occur together in at least one case."""
    options = {name: list(values) for name, values in options.items()}
    return parametrised(
        options, [[values[place] for values, place in zip(options.values(), row, strict=True)] for row in rows(options)]
    )


def every_value(**options):
    """The parametrisation by `options` with as many cases as the longest has values; the shorter ones recur."""
    values = [list(each) for each in options.values()]
    return parametrised(options, [[each[case % len(each)] for each in values] for case in range(max(map(len, values)))])


def parametrised(options, cases):
    """A case has the marks of all its values."""
    marked = []
    for case in cases:
        values = [value if isinstance(value, MARKED) else pytest.param(value) for value in case]
        marks = [mark for value in values for mark in value.marks]
        marked.append(pytest.param(*(value.values[0] for value in values), marks=marks))
    return pytest.mark.parametrize(tuple(options), marked)


def rows(options):
    """Rows of places in the lists of values; each begins with the first pair that is left and takes all it can."""
    sizes = [len(values) for values in options.values()]
    left = {
        ((one, a), (other, b)): None  # a dictionary, whose order is that of insertion
        for one, other in combinations(range(len(sizes)), 2)
        for a in range(sizes[one])
        for b in range(sizes[other])
    }
    while left:
        row = dict(next(iter(left)))
        for option in sorted(set(range(len(sizes))) - row.keys(), key=lambda option: -sizes[option]):
            row[option] = max(range(sizes[option]), key=lambda place: sum(p in left for p in pairs(row, option, place)))
        for pair in combinations(sorted(row.items()), 2):
            left.pop(pair, None)
        yield [row[option] for option in range(len(sizes))]


def pairs(row, option, place):
    """The pairs that a value makes with the values of a row."""
    return [tuple(sorted((chosen, (option, place)))) for chosen in row.items()]
