from elman.analysis.by_word import WordRow, write_reading_page


def row(word, position, surprisal):
    figures = {"entropy": 2.0, "entropy_reduction": 0.5, "rank": 3, "frequency": None, "unknown": 0}
    return WordRow(sentence=1, position=position, word=word, surprisal=surprisal, length=len(word), **figures)


def test_words_stand_by_falling_surprisal_also_where_it_is_nothing(tmp_path):
    words = {"certain": 0.0, "likely": 0.5, "unread": None, "rare": 9.0, "even": 1.0}
    rows = [row(word, at, bits) for at, (word, bits) in enumerate(words.items(), start=1)]
    page = write_reading_page(tmp_path / "page.html", rows, "a model", "a text").read_text()
    table = page[page.index("The most surprising words") :]
    shown = sorted((word for word in words if f">{word}<" in table), key=lambda word: table.index(f">{word}<"))
    assert shown == ["rare", "even", "likely", "certain"]
