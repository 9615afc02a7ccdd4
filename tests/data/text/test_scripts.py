"""Words, characters and ends of sentences in many scripts: counts by hand, letters with their marks, text restored."""

import textwrap
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from elman.config.text import TextOptions
from elman.data.text.facts import facts_of
from elman.data.text.patterns import WORDS, characters_of, words_of
from elman.data.text.tokeniser import Tokeniser, detokenise
from elman.tasks.proposal.text import reading
from support.paragraphs import assert_read_and_restored, begins_with_a_mark, sentences_in

RAW, CHARACTERS = TextOptions(tokenisation="raw"), TextOptions(tokenisation="characters", eos="exact")

SPACED = {  # a paragraph of two sentences, its words, its marks
    "Latin": ("The boat's oar-locks are old. Did we row, then?", 9, 3),
    "Vietnamese, decomposed": (unicodedata.normalize("NFD", "Tiếng Việt rất đẹp. Tôi học mỗi ngày!"), 8, 2),
    "Greek": ("Ὁ ἄνεμος φυσᾷ, ἡ θάλασσα ἠρεμεῖ. Ποῦ πᾶμε; Πέρα.", 9, 4),
    "Cyrillic": ("Сего́дня идёт снег. Мы сиди́м до́ма, а кот спит.", 9, 3),
    "Armenian": ("Այսօր ձյուն է գալիս։ Մենք տանն ենք, իսկ կատուն քնած է։", 11, 3),
    "Georgian": ("დღეს თოვს და ცივა. ჩვენ სახლში ვართ!", 7, 2),
    "Hebrew": ("הַיּוֹם יוֹרֵד שֶׁלֶג. אֲנַחְנוּ בַּבַּיִת, וְהֶחָתוּל יָשֵׁן.", 7, 3),
    "Arabic": ("نَزَلَ الثَّلْجُ اليَوْمَ. هَلْ نَحْنُ في البَيْتِ؟", 7, 2),
    "Persian": ("می‌خواهم به خانه‌ام بروم. کتاب‌ها کجا هستند؟", 7, 2),
    "Syriac": ("ܫܠܳܡܳܐ ܠܟܽܘܢ ܟܽܠܟܽܘܢ. ܐܰܝܟܰܐ ܐܺܝܬܰܝܟܽܘܢ؟", 5, 2),
    "Thaana": ("މިއަދު ވާރޭ ވެހެއެވެ. އަހަރެން ގޭގައި ހުރީމެވެ.", 6, 2),
    "Devanagari": ("आज बर्फ़ गिर रही है। क्या हम घर में हैं?", 10, 2),
    "Bengali": ("আজ বৃষ্টি হচ্ছে। আমরা ঘরে আছি, বিড়াল ঘুমাচ্ছে।", 8, 3),
    "Gurmukhi": ("ਅੱਜ ਮੀਂਹ ਪੈਂਦਾ ਹੈ। ਅਸੀਂ ਘਰ ਵਿੱਚ ਹਾਂ।", 8, 2),
    "Gujarati": ("આજે વરસાદ પડે છે. અમે ઘરમાં છીએ.", 7, 2),
    "Tamil": ("இன்று மழை பெய்கிறது. நாங்கள் வீட்டில் இருக்கிறோம்!", 6, 2),
    "Telugu": ("ఈ రోజు వర్షం కురుస్తోంది. మేము ఇంట్లో ఉన్నాము.", 7, 2),
    "Kannada": ("ಇಂದು ಮಳೆ ಬರುತ್ತಿದೆ. ನಾವು ಮನೆಯಲ್ಲಿ ಇದ್ದೇವೆ.", 6, 2),
    "Malayalam": ("ഇന്ന് മഴ പെയ്യുന്നു. ഞങ്ങൾ വീട്ടിൽ ഇരിക്കുന്നു.", 6, 2),
    "Sinhala": ("අද වැස්ස වහිනවා. ශ්‍රී ලංකාව ලස්සනයි.", 6, 2),
    "Ethiopic": ("ዛሬ ዝናብ ይዘንባል። እኛ ቤት ነን፣ ድመቷ ተኝታለች።", 8, 3),
    "Hangul": ("오늘은 눈이 온다. 우리는 집에 있다!", 6, 2),
    "Hangul, decomposed": (unicodedata.normalize("NFD", "오늘은 눈이 온다. 우리는 집에 있다!"), 6, 2),
}
UNSPACED = {
    "Japanese": "今日は雪が降っている。私たちは家にいるが、猫はどこにいるのだろうか？",
    "Chinese": "今天外面下着很大的雪。我们都在温暖的家里，猫在炉子旁边睡觉。",
    "Thai": "วันนี้ฝนตกหนักมากจริงๆ เราจึงอยู่ที่บ้านด้วยกันทั้งวัน",
    "Lao": "ມື້ນີ້ຝົນຕົກແຮງຫຼາຍ ພວກເຮົາຢູ່ເຮືອນນຳກັນໝົດມື້",
    "Khmer": "ថ្ងៃនេះភ្លៀងធ្លាក់ខ្លាំងណាស់។ យើងនៅផ្ទះជាមួយគ្នាពេញមួយថ្ងៃ។",
    "Burmese": "ယနေ့မိုးသည်းထန်စွာရွာသွန်းနေသည်။ ကျွန်ုပ်တို့အိမ်တွင်ရှိနေကြသည်။",
    "Tibetan": "དེ་རིང་ཆར་པ་ཆེན་པོ་བབས་སོང་། ང་ཚོ་ཁྱིམ་ལ་བསྡད་པ་ཡིན།",
}
CLUSTER = regex.compile(r"\X")


@pytest.mark.parametrize("script", SPACED)
def test_words_keep_their_marks_and_the_text_comes_back(script):
    text, words, marks = SPACED[script]
    tokens = Tokeniser(RAW).encode(text)
    assert len(tokens) == words + marks
    assert sum(any(letter.isalpha() for letter in token) for token in tokens) == words
    assert not any(map(begins_with_a_mark, tokens))
    assert detokenise(tokens, RAW) == text
    assert facts_of(text * 20, 1000).words
    assert reading(facts_of(f"{text}\n" * 60, 4000)).load().data.tokenisation == "raw"


@pytest.mark.parametrize("script", UNSPACED)
def test_scripts_without_blanks_are_read_in_characters(script):
    text = UNSPACED[script]
    facts = facts_of(f"{text}\n" * 60, 4000)
    assert not facts.words
    assert "no spaces between words: characters" in str(reading(facts).reasons)


@pytest.mark.parametrize("text", [*(text for text, *_ in SPACED.values()), *UNSPACED.values()])
def test_characters_have_their_marks(text):
    tokens = Tokeniser(CHARACTERS).encode(text)
    assert "".join(tokens) == detokenise(tokens, CHARACTERS) == text
    assert not any(map(begins_with_a_mark, tokens))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("👩‍👩‍👧 🏳️‍🌈👍🏽❤️!", ["👩‍👩‍👧", "🏳️‍🌈", "👍🏽", "❤️", "!"]),
        ("🇯🇵🇫🇷🇮", ["🇯🇵", "🇫🇷", "🇮"]),
        ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f!", None),
        ("1️⃣ #️⃣", ["1️⃣", "#️⃣"]),
        ("co\u00adop wel\u2060come", ["co\u00adop", "wel\u2060come"]),
        ('צה"ל וצה״ל אמר "לא" בית־ספר', ['צה"ל', "וצה״ל", "אמר", '"', "לא", '"', "בית־ספר"]),
        ("col·lapse · vis‐à‐vis", ["col·lapse", "·", "vis‐à‐vis"]),
        ("zero\ufeffwidth", ["zero\ufeffwidth"]),
        ("葛\U000e0100城", ["葛\U000e0100城"]),
        ("..\u0308 --\u0301 (\u0301)", [".", ".\u0308", "-", "-\u0301", "(\u0301", ")"]),
        ("\u0661\u066b\u0665 ١,٥ ३.१४", ["\u0661", "\u066b", "\u0665", "١,٥", "३.१४"]),
    ],
)
def test_sequences_of_one_sign(text, tokens):
    assert words_of(text) == tokens if tokens else len(words_of(text)) == 2


PIECES = [
    *"ab1.,-'’ \t",
    *"éक्षिמּَ",
    "\u0301",
    "\u200d",
    "\u200c",
    "\ufe0f",
    "👩",
    "🏽",
    "🇯",
    "각",
    "\u1100",
    "\u1161",
    "\u11a8",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_grapheme_is_cut(text):
    """Tokens end where clusters of UAX 29 do, blanks apart; characters are clusters or parts of a conjunct."""
    clusters, at = {0}, 0
    for cluster in CLUSTER.findall(text):
        at += len(cluster)
        clusters.add(at)
    at = 0
    for token in words_of(text):
        begin = text.index(token, at)
        at = begin + len(token)
        assert begin in clusters or text[begin - 1].isspace(), (token, text)
    assert "".join(characters_of(text)) == text


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_read_by_the_same_pattern(text):
    assert words_of(text) == regex.findall(WORDS, text)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        *((text, 2) for name, (text, *_) in SPACED.items() if name != "Greek"),
        *((UNSPACED[name], 2) for name in ("Japanese", "Chinese", "Khmer", "Burmese", "Tibetan")),
        ("「はい。」と言った！？そう．次", 3),
        ("„Ja.“ Er ging… Dann (vielleicht!) kam er.", 4),
        ("यह है।वह है॥", 2),
        ("3.14 e.g.x", 0),
    ],
)
def test_sentences_end_in_every_script(text, ends):
    assert sentences_in(text) == ends


FRENCH = "L'homme qu'on voit aujourd'hui n'a pas d'amis. Jusqu'à l'été, s'en va-il? « C'est l’ami »."
ITALIAN = "L'arte dell'uomo e un'altra cosa: c'è l'amico."


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (
            FRENCH,
            "L' homme qu' on voit aujourd'hui n' a pas d' amis . Jusqu' à l' été , s' en va-il ? « C' est l’ ami » .",
        ),
        (ITALIAN, "L' arte dell' uomo e un' altra cosa : c' è l' amico ."),
        ("l'homme, t'aime; the dogs' end", "l' homme , t' aime ; the dogs ' end"),
    ],
)
def test_elisions_end_words_and_the_text_comes_back(text, tokens):
    options = TextOptions(tokenisation="raw", elisions=True)
    assert Tokeniser(options).encode(text) == tokens.split()
    spaced = text.replace("« ", "«").replace(" »", "»")
    assert detokenise(Tokeniser(options).encode(spaced), options) == spaced


def test_elisions_are_chosen_by_what_stands_around_apostrophes():
    nouns = ["homme", "eau", "arbre", "or", "argent", "école", "image", "oiseau", "enfant", "ours", "idée", "ombre"]
    french = "".join(f"Il voit l'{noun} et d'autres, mais pas un {noun}.\n" for noun in nouns)
    english = "".join(f"The {noun}'s end isn't here, o'er the {noun}; he'll say the {noun}'s.\n" for noun in nouns)
    uzbek = "".join(f"bo'{noun} o'{noun[::-1]} {noun}g'ir\n" for noun in nouns)
    proposals = [reading(facts_of(text, len(text))) for text in (french, english, uzbek)]
    assert ["data.elisions=true" in proposal.settings for proposal in proposals] == [True, False, False]
    assert "an apostrophe before a letter ends a word (l' homme)" in proposals[0].reasons


@pytest.mark.parametrize(("names", "alone", "elided"), [(10, 2, True), (9, 9, False), (14, 2, False), (13, 2, True)])
def test_few_beginnings_of_ten_words_of_which_some_stand_alone_are_elisions(names, alone, elided):
    """Fifteen of a hundred words stand alone at least."""
    words = [f"wo{letter}d" for letter in "abcdefghijklmn"[:names]]
    text = "".join(f"Here l'{word} is.\n" for word in words) + "".join(f"Here a {word} is.\n" for word in words[:alone])
    assert facts_of(text, len(text)).elisions == elided


def test_lines_that_end_sentences_are_no_wrapped_prose_in_scripts_without_capitals():
    lines = [
        f"यह {word} बहुत पुरानी किताब मेरे घर में रखी हुई है।" for word in ["एक", "दो", "तीन", "चार", "पाँच", "छह", "सात", "आठ"]
    ] * 9
    assert not facts_of("\n".join(lines), 9999).wrapped
    prose = " ".join(lines).split()
    wrapped = textwrap.fill(" ".join(prose), 60)
    assert facts_of(wrapped, 9999).wrapped


def test_a_text_of_many_scripts_has_the_words_that_are_counted_by_hand(tmp_path):
    """No entry of the vocabulary begins with a mark; every paragraph is written back as it was."""
    assert_read_and_restored(SPACED.values(), tmp_path)


def test_subwords_that_are_asked_for_can_be_trained():
    proposal = reading(facts_of("The old lamp likes the cat.\n" * 60, 4000), given=["data.tokenisation=subwords"])
    assert proposal.load().data.min_count == 1


@pytest.mark.parametrize(
    "text",
    [
        "one—two",
        "слово — слово",
        "«— да»",
        '"the first line\nand the second" of it',
        '"the first line\n\n"another paragraph"',
    ],
)
def test_dashes_and_quotes_of_several_lines_come_back(text):
    options = TextOptions(tokenisation="raw")
    tokens = [token for line in text.split("\n") for token in (*Tokeniser(options).encode(line), "<eos>")]
    assert detokenise(tokens[:-1], options) == text
