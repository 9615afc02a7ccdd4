"""Which texts have words between their spaces."""

import pytest

from elman.data.text.passages import has_words, unseparated

ENGLISH = "It is a truth universally acknowledged; internationalisation, 3.14159265358979 and naïveté too.\n"
JAPANESE = "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ENGLISH, True),
        (JAPANESE, False),
        ("吾輩 は 猫 で ある 。 名前 は まだ 無い 。 テレビ も\n" * 3, True),
        ("ฉันรักภาษาไทยมากและอยากเรียนรู้\n", False),
        ("ฉัน รัก ภาษา ไทย มาก และ อยาก เรียน รู้\n", True),
        ("Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz\n", True),
        ("Предусмотрительность человеконенавистничества\n", True),
        ("나는 고양이로소이다 이름은 아직 없다\n", True),
        ("吾輩は LSTM と GRU を用いて言語モデルを学習する (hidden size 650, dropout 0.5).\n", False),
        (ENGLISH * 9 + JAPANESE[:17], True),
        (ENGLISH + JAPANESE, False),
        ("我是貓。還沒有名字。也不知道在哪裡出生。\n", False),
    ],
)
def test_words_between_spaces(text, words):
    assert has_words(sum(map(unseparated, text.splitlines())), len(text)) == words


def test_marks_and_figures_are_no_letters():
    assert unseparated("、。「」『』・〽〜〜〜〜〜〜") == 0
    assert unseparated("２０２４年１２月３１日２３時５９分") == 0
    assert unseparated("ｱｲｳｴｵｶｷｸｹ") == unseparated("国々のコーヒーと〆") == 9


def test_eight_letters_may_be_a_word():
    assert unseparated("トランポリンだ") == 0
    assert unseparated("アイスクリーム屋さん") == 10
