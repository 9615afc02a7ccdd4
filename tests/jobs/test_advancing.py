from elman.jobs import advancing


def test_every_part_is_counted_after_what_is_done_with_it():
    heard = []
    for part in advancing("ab", 5, lambda done, total: heard.append((done, total))):
        heard.append(part)
    assert heard == ["a", (1, 5), "b", (2, 5)]
    assert list(advancing("ab", 2, None)) == ["a", "b"]
