"""Paragraphs in many scripts, with their words, marks and sentences as counted by hand."""

import unicodedata

from elman.config.text import TextOptions
from elman.data.text.corpus import open_corpus
from elman.data.text.patterns import sentence_end
from elman.data.text.tokeniser import detokenise

SPACED = {  # a paragraph, its words and numbers, its marks, its sentences
    "English": (
        "The ferry left at 6:45, three minutes late. “You’ll miss the matinée,” said Zoë, “unless we run!” Nobody ran."
        " The harbour-master's cat (old, grey, well-fed) watched 1,200 sacks of café noir go by. Why hurry?",
        35, 16, 5,
    ),
    "Vietnamese": (
        "Sáng nay bà ngoại dậy lúc 5 giờ, đun một ấm nước và mở cửa sổ. Ngoài vườn có 12 cây bưởi, cây nào cũng ướt."
        " Bà hỏi: “Hôm nay cháu có uống cà phê không?” Tôi lắc đầu, vì ga-ra còn khóa. Thế là hai bà cháu ngồi im!",
        50, 11, 5,
    ),
    "Turkish": (
        "İstanbul’da 1987 kışı çok sertti. Ağabeyim Iğdır'dan gelmiş, otobüste 26 saat oturmuştu. Annem, “Şimdi çorba"
        " içilir,” dedi. Saat 12:30'da elektrik kesildi; güğümdeki su ısınmadı. Peki, kim üşümedi ki?",
        28, 12, 5,
    ),
    "German": (
        "Im Jahr 1903 kaufte mein Urgroßvater ein Café in Köln. „Das wird nie was“, brummte seine Frau, „du weißt ja"
        " nicht, wie man rechnet.“ Es kostete 4.500 Mark. Über der Tür hing ein Schild: ‚Geöffnet‘. Wer kam? Alle!",
        38, 16, 6,
    ),
    "Spanish": (
        "¿Quién dejó la puerta abierta? El señor Núñez, que tiene 83 años, dijo: «Yo no fui». Luego encendió la radio,"
        " buscó un poco de jazz y se sentó. ¡Qué calor hacía! Eran las 3:15 de la tarde.",
        37, 13, 5,
    ),
    "Polish": (
        "Babcia zgasiła światło o 22:15. „Śpij już”, powiedziała, „jutro jedziemy do Łodzi”. W plecaku miałem dżem,"
        " 3 jabłka i notes. Zażółcić gęślą jaźń? Żaden problem!",
        25, 12, 5,
    ),
    "Greek, polytonic": (
        "Ὁ γέρων ἐκάθητο πρὸ τῆς θύρας καὶ ἠρίθμει τὰς 12 αἶγας του. «Ποῦ εἶναι ἡ μικρά;» ἠρώτησεν ἡ γυνή· ἐκεῖνος,"
        " ὅμως, δὲν ἀπεκρίθη. Ἐφύσα ὁ ἄνεμος — ψυχρός, ὡς πάντοτε. Τὸ ῥάδιον ἐσίγησε!",
        32, 12, 4,
    ),
    "Russian": (
        "— Куда ты? — спросила Анна. Поезд в 7:40 уже ушёл, а следующий будет через 2 часа. «Ничего, — сказал брат, —"
        " выпьем кофе». Он достал из-за пазухи „Вечёрку“ и сел. За́мок или замо́к? Ёлка молчала…",
        32, 18, 7,
    ),
    "Ukrainian": (
        "Улітку 2019 року ми жили біля Ґданська. Бабуся п’є чай, а об'єктив старого «Зеніта» лежить на підвіконні."
        " Чи їхатимемо завтра? Дощ іде вже 3 дні! Радіо каже: буде сонце.",
        29, 9, 5,
    ),
    "Armenian": (
        "Տատս ապրում էր Գյումրիում՝ 14 համարի տանը։ Ամեն առավոտ նա սուրճ էր եփում և հարցնում՝ «Ո՞ւր ես գնում»։"
        " Ես լռում էի։ Ի՜նչ լավ օր էր, ռադիոն երգում էր։",
        28, 9, 4,
    ),
    "Georgian": (
        "ბებია თბილისში, 25 ნომერში ცხოვრობდა. ყოველ დილით ყავას ადუღებდა და კითხულობდა: „სად მიდიხარ?“ მე ვდუმდი."
        " რადიო 2-ჯერ გაფუჭდა! ეზოში ხე იდგა.",
        21, 9, 5,
    ),
    "Hebrew, pointed": (
        "סָבָא גָּר בְּרְחוֹב הַגֶּפֶן 7. בְּכָל בֹּקֶר הוּא שׁוֹתֶה קָפֶה, קוֹרֵא עִתּוֹן וְשׁוֹאֵל: \"לְאָן הוֹלְכִים?\" אִמָּא עוֹנָה: לַצָּבָא שֶׁל צה״ל!"
        " בֵּית־הַסֵּפֶר סָגוּר. הָרַדְיוֹ שׁוֹתֵק.",
        24, 10, 5,
    ),
    "Arabic, vocalised": (
        "خَرَجَ جَدِّي فِي السَّاعَةِ ٧:٣٠ صَبَاحًا، وَمَعَهُ ٣ كُتُبٍ. قَالَتْ أُمِّي: «إِلَى أَيْنَ؟» لَمْ يُجِبْ؛ كَانَ يُحِبُّ السِّينِمَا."
        " هَلْ عَادَ؟ نَعَمْ!",
        21, 10, 5,
    ),
    "Persian": (
        "مادربزرگم هر روز ساعت ۶:۱۵ بیدار می‌شود و چای می‌نوشد. می‌گوید: «کتاب‌هایت کجاست؟» من ۲ دفتر دارم، اما"
        " رادیو ندارم. خانه‌مان کوچک است؛ باغچه‌اش بزرگ!",
        25, 9, 4,
    ),
    "Urdu": (
        "میرے دادا لاہور کے مکان نمبر ۴۵ میں رہتے تھے۔ وہ ہر صبح چائے پیتے، اخبار پڑھتے اور پوچھتے: ”کہاں جا رہے ہو؟“"
        " میں چپ رہتا۔ ریڈیو پر گیت تھا! کیا اچھے دن تھے؟",
        34, 9, 5,
    ),
    "Hindi": (
        "मेरी दादी सुबह ५:३० बजे उठती थीं। वे ज़मीन पर बैठकर चाय पीतीं, अख़बार पढ़तीं और पूछतीं: “आज स्कूल नहीं जाओगे?”"
        " मैं हँसकर कहता, ‘छुट्टी है’। रेडियो पर क्रिकेट था! श्रृंगार-कक्ष में १२ दर्पण थे।",
        35, 12, 5,
    ),
    "Bengali": (
        "আমার ঠাকুমা ভোর ৫টায় উঠতেন। চা খেয়ে তিনি জিজ্ঞেস করতেন, “আজ ইস্কুল নেই?” আমি বলতাম: ‘ছুটি’। রেডিওতে ক্রিকেট চলত!"
        " দুঃখ, সুখ — সবই ছিল।",
        23, 13, 5,
    ),
    "Punjabi": (
        "ਮੇਰੀ ਦਾਦੀ ਸਵੇਰੇ ੫ ਵਜੇ ਉੱਠਦੀ ਸੀ। ਉਹ ਚਾਹ ਪੀਂਦੀ, ਅਖ਼ਬਾਰ ਪੜ੍ਹਦੀ ਤੇ ਪੁੱਛਦੀ: “ਅੱਜ ਸਕੂਲ ਨਹੀਂ?” ਮੈਂ ਚੁੱਪ ਰਹਿੰਦਾ।"
        " ਰੇਡੀਓ ਵੱਜਦਾ ਸੀ!",
        23, 8, 4,
    ),
    "Gujarati": (
        "મારાં દાદી સવારે ૫:૩૦ વાગ્યે ઊઠતાં. ચા પીને તેઓ પૂછતાં, “આજે સ્કૂલ નથી?” હું હસતો. રેડિયો પર ક્રિકેટ ચાલતું! ઘર નાનું, પણ"
        " સુંદર હતું.",
        24, 9, 5,
    ),
    "Oriya": (
        "ମୋ ଜେଜେମା ସକାଳ ୫ଟାରେ ଉଠୁଥିଲେ। ଚା ପିଇ ସେ ପଚାରୁଥିଲେ, “ଆଜି ସ୍କୁଲ ନାହିଁ?” ମୁଁ ହସୁଥିଲି। ରେଡିଓରେ କ୍ରିକେଟ ଚାଲୁଥିଲା! ଘରଟି ଛୋଟ ଥିଲା।",
        20, 8, 5,
    ),
    "Tamil": (
        "என் பாட்டி காலை 5:30 மணிக்கு எழுவார். காபி குடித்துவிட்டு, “இன்று ஸ்கூல் இல்லையா?” என்று கேட்பார். நான் சிரிப்பேன்."
        " ரேடியோவில் கிரிக்கெட் ஓடியது! ஸ்ரீரங்கம் போகலாமா?",
        20, 9, 6,
    ),
    "Telugu": (
        "మా నాయనమ్మ ఉదయం 5 గంటలకు లేచేది. కాఫీ తాగి, “ఈ రోజు స్కూలు లేదా?” అని అడిగేది. నేను నవ్వేవాణ్ణి. రేడియోలో క్రికెట్ వచ్చేది!"
        " ఇల్లు చిన్నది, కానీ అందంగా ఉండేది.",
        24, 10, 6,
    ),
    "Kannada": (
        "ನನ್ನ ಅಜ್ಜಿ ಬೆಳಿಗ್ಗೆ ೫ ಗಂಟೆಗೆ ಏಳುತ್ತಿದ್ದಳು. ಕಾಫಿ ಕುಡಿದು, “ಇಂದು ಸ್ಕೂಲ್ ಇಲ್ಲವೇ?” ಎಂದು ಕೇಳುತ್ತಿದ್ದಳು. ನಾನು ನಗುತ್ತಿದ್ದೆ. ರೇಡಿಯೋದಲ್ಲಿ"
        " ಕ್ರಿಕೆಟ್ ಬರುತ್ತಿತ್ತು!",
        18, 8, 5,
    ),
    "Malayalam": (
        "എന്റെ മുത്തശ്ശി രാവിലെ 5:30ന് എഴുന്നേൽക്കും. കാപ്പി കുടിച്ച്, “ഇന്ന് സ്കൂൾ ഇല്ലേ?” എന്നു ചോദിക്കും. അവൻ ചിരിക്കും; അവള്‍"
        " മിണ്ടില്ല. റേഡിയോയിൽ ക്രിക്കറ്റ് ഉണ്ടായിരുന്നു!",
        19, 9, 5,
    ),
    "Sinhala": (
        "මගේ ආච්චි උදේ 5.30ට නැගිටිනවා. තේ බීලා, “අද ඉස්කෝලේ නැද්ද?” කියලා අහනවා. මම හිනා වෙනවා. රේඩියෝවේ ක්‍රිකට් ගියා!"
        " ශ්‍රී ලංකාව ලස්සනයි.",
        21, 9, 6,
    ),
    "Amharic": (
        "አያቴ በየቀኑ ከጠዋቱ 12:30 ይነሳ ነበር። ቡና ጠጥቶ «ዛሬ ትምህርት የለም?» ይላል። እኔ እስቃለሁ፤ ሬዲዮው ግን ዝም ብሏል። ቤቱ ትንሽ፣ ግን ቆንጆ ነበር!",
        23, 9, 5,
    ),
    "Ge'ez, words divided by marks": ("በመጀመሪያ፡ቃል፡ነበረ። ቃልም፡በእግዚአብሔር፡ዘንድ፡ነበረ።", 7, 7, 2),
    "Korean": (
        "우리 할머니는 아침 6시 30분에 일어나셨다. 커피를 마시고 “오늘은 학교에 안 가니?” 하고 물으셨다. 나는 웃었다. 라디오에서는 야구 중계가"
        " 나왔다! 집은 작았지만, 마당은 넓었다.",
        24, 9, 6,
    ),
    "Cherokee": (
        "ᏏᏲ! ᎠᎩᎵᏏ ᏑᎾᎴᎢ 5 ᎢᏳᏟᎶᏓ ᎠᏗᏙᎲᏍᎪᎢ. “ᎦᏙ ᎤᏍᏗ?” ᎤᏛᏅᎢ. ᎧᏫ ᎠᏗᏔᏍᎪᎢ, ᎠᎴ ᎤᎵᎮᎵᏍᏗ.",
        13, 8, 5,
    ),
    "Mongolian": (
        "ᠮᠣᠩᠭᠣᠯ\u202fᠤᠨ ᠲᠠᠯ᠎ᠠ ᠪᠣᠯ ᠥᠷᠭᠡᠨ᠃ ᠪᠢ ᠮᠣᠷᠢ\u202fᠪᠠᠷ ᠶᠠᠪᠤᠨ᠎ᠠ᠂ ᠲᠡᠷᠡ ᠷᠠᠳᠢᠣ᠋ ᠰᠣᠨᠣᠰᠤᠨ᠎ᠠ᠃",
        10, 3, 2,
    ),
    "Emoji": (
        "Party at 7:30 👩‍👩‍👧‍👦! Bring 🍕, 🥗 and 1️⃣ cake 🎂. Flags: 🇯🇵 🇺🇦 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏳️‍🌈. Who comes? 👍🏽 👩🏿‍🚀 ❤️‍🔥!",
        10, 18, 5,
    ),
}  # fmt: skip
SPACED["Korean, decomposed"] = (unicodedata.normalize("NFD", SPACED["Korean"][0]), *SPACED["Korean"][1:])
SPACED["Vietnamese, decomposed"] = (unicodedata.normalize("NFD", SPACED["Vietnamese"][0]), *SPACED["Vietnamese"][1:])

UNSPACED = {  # a paragraph, its characters (letters with their marks, blanks too), its sentences
    "Japanese": (
        "祖母は毎朝5時半に起きた。コーヒーを飲みながら「今日は学校は休みなの？」と聞く。葛\U000e0100城の家は小さかったが、庭は広かった！ラジオからは"
        "野球中継が流れていた。『坊っちゃん』を12回も読んだという。",
        95, 6,
    ),
    "Chinese": (
        "奶奶每天早上5:30起床。她一边喝咖啡，一边问：“今天不上学吗？”我笑了。收音机里正在播放足球比赛！房子虽小，院子却很大；那只叫“沙发”的猫"
        "睡了12个小时。",
        78, 5,
    ),
    "Thai": ("คุณยายตื่นนอนตอน 05:30 น. ทุกวัน ท่านดื่มกาแฟแล้วถามว่า “วันนี้ไม่ไปโรงเรียนหรือ?” ฉันยิ้มๆ วิทยุเปิดเพลงแจ๊ส บ้านหลังเล็ก แต่สวนกว้างมาก!", 110, 3),
    "Lao": ("ແມ່ເຖົ້າຕື່ນແຕ່ 5 ໂມງເຊົ້າ. ເພິ່ນດື່ມກາເຟແລ້ວຖາມວ່າ: “ມື້ນີ້ບໍ່ໄປໂຮງຮຽນບໍ?” ຂ້ອຍຍິ້ມ. ວິທະຍຸເປີດເພງ! ເຮືອນນ້ອຍ.", 82, 5),
    "Khmer": ("ជីដូនខ្ញុំក្រោកម៉ោង ៥:៣០ ព្រឹក។ គាត់ផឹកកាហ្វេ រួចសួរថា៖ «ថ្ងៃនេះមិនទៅសាលាទេ?» ខ្ញុំញញឹម។ វិទ្យុចាក់ចម្រៀង! ផ្ទះតូចណាស់។", 74, 5),
    "Burmese": ("အဘွားသည် မနက် ၅:၃၀ တွင် ထသည်။ ကော်ဖီသောက်ပြီး “ဒီနေ့ ကျောင်းမသွားဘူးလား?” ဟုမေးသည်။ ကျွန်တော်ပြုံးသည်။ ရေဒီယိုဖွင့်ထားသည်၊ အိမ်ငယ်သည်။", 72, 6),
    "Tibetan": ("ངའི་ཨ་ཕྱི་ཞོགས་པ་ཆུ་ཚོད་༥:༣༠ལ་ལངས་སོང་། ཁོང་གིས་ཀོ་ཧྥི་འཐུང་ནས་“དེ་རིང་སློབ་གྲྭ་མེད་དམ”ཞེས་དྲིས། ང་གད་མོ་བགད་པ་ཡིན། ཁང་པ་ཆུང་ཆུང་རེད།", 105, 4),
}  # fmt: skip


def begins_with_a_mark(token):
    return unicodedata.category(token[0]).startswith("M") or token[0] in "\u200c\u200d\u00ad"


def sentences_in(text):
    found, rest = 0, f"{text}\n"
    while (end := sentence_end(rest)) is not None:
        found, rest = found + 1, rest[end:]
    return found


def assert_read_and_restored(paragraphs, folder):
    """One text of (paragraph, words, marks, ...): its tokens, no entry that begins with a mark, the text again."""
    texts, tokens = [one[0] for one in paragraphs], sum(one[1] + one[2] + 1 for one in paragraphs)
    path = folder / "paragraphs.txt"
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    options = TextOptions(tokenisation="raw", valid_fraction=0.0, test_fraction=0.0)
    corpus = open_corpus(path, options, partial=True, cache=folder)
    split = corpus.split("train")
    assert len(split.tokens) == tokens
    assert not any(map(begins_with_a_mark, corpus.vocabulary.words))
    assert detokenise(corpus.vocabulary.decode(split.tokens), options) == path.read_text(encoding="utf-8")
