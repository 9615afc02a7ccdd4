"""Are texts in other encodings than UTF-8 refused with the right one among those shown? `python benchmarks/codepages.py`.

Every text below is written in each of its encodings, short, long and, in every third one, with a control character:
some 250 files in over sixty encodings. Counted are the files that are read in silence, and of the others those whose
message shows the text as it is (in the right encoding, or one that gives the same letters), first or at all.
"""

import argparse
import collections
import json
import random
import tempfile
from pathlib import Path

from elman.data.text.encodings import candidates, needs_encoding

TEXTS = {
    "Russian": ("cp1251 koi8_r iso8859_5 cp866 mac_cyrillic cp855",
        "Вчера вечером мы долго сидели у реки и говорили о будущем. Старый рыбак починил сеть, а его внук считал лодки.\n"
        "Завтра, если не будет дождя, поедем в город за книгами и хлебом. Ещё нужно купить жёлтую краску для забора."),
    "Ukrainian": ("cp1251 koi8_u iso8859_5 cp1125",
        "Учора ввечері ми довго сиділи біля річки й говорили про майбутнє. Старий рибалка полагодив сітку, а його онук лічив човни.\n"
        "Завтра, якщо не буде дощу, поїдемо до міста по книжки та хліб. Ще треба купити жовту фарбу для паркану."),
    "Bulgarian": ("cp1251 iso8859_5 mac_cyrillic",
        "Снощи дълго седяхме край реката и говорихме за бъдещето. Старият рибар поправи мрежата, а внукът му броеше лодките.\n"
        "Утре, ако не вали, ще отидем в града за книги и хляб. Трябва да купим и жълта боя за оградата."),
    "Serbian": ("cp1251 iso8859_5",
        "Синоћ смо дуго седели крај реке и причали о будућности. Стари рибар је поправио мрежу, а његов унук је бројао чамце.\n"
        "Сутра, ако не буде кише, идемо у град по књиге и хлеб."),
    "Kazakh": ("kz1048 ptcp154",
        "Кеше кешке дейін өзен жағасында отырып, болашақ туралы ұзақ әңгімелестік. Қарт балықшы ауын жамап, немересі қайықтарды санады.\n"
        "Ертең жаңбыр жаумаса, кітап пен нан алуға қалаға барамыз."),
    "Tajik": ("koi8_t",
        "Дина шом мо дер дар соҳили дарё нишастем ва дар бораи оянда сухан гуфтем. Моҳигири пир тӯрашро дуруст кард, наберааш қаиқҳоро мешумурд."),
    "Greek": ("cp1253 iso8859_7 cp737 cp869 mac_greek",
        "Χθες το βράδυ καθίσαμε πολλή ώρα δίπλα στο ποτάμι και μιλούσαμε για το μέλλον. Ο γέρος ψαράς έφτιαξε το δίχτυ και ο εγγονός του μετρούσε τις βάρκες.\n"
        "Αύριο, αν δεν βρέξει, θα πάμε στην πόλη για βιβλία και ψωμί. Πρέπει να αγοράσουμε και κίτρινη μπογιά."),
    "Hebrew": ("cp1255 iso8859_8 cp862",
        "אתמול בערב ישבנו זמן רב ליד הנהר ודיברנו על העתיד. הדייג הזקן תיקן את הרשת, ונכדו ספר את הסירות.\n"
        "מחר, אם לא ירד גשם, ניסע לעיר לקנות ספרים ולחם. צריך לקנות גם צבע צהוב לגדר."),
    "Arabic": ("cp1256 iso8859_6 cp864",
        "جلسنا مساء أمس طويلا بجانب النهر وتحدثنا عن المستقبل. أصلح الصياد العجوز شبكته بينما كان حفيده يعد القوارب.\n"
        "غدا إن لم يهطل المطر سنذهب إلى المدينة لشراء الكتب والخبز. يجب أن نشتري أيضا طلاء أصفر للسياج."),
    "Persian": ("cp1256",
        "دیروز عصر مدت زیادی کنار رودخانه نشستیم و درباره آینده حرف زدیم. ماهیگیر پیر تورش را درست کرد و نوه اش قایق ها را شمرد.\n"
        "فردا اگر باران نبارد برای خرید کتاب و نان به شهر می رویم."),
    "Urdu": ("cp1256",
        "کل شام ہم دیر تک دریا کے کنارے بیٹھے مستقبل کی باتیں کرتے رہے۔ بوڑھے مچھیرے نے جال ٹھیک کیا اور اس کا پوتا کشتیاں گنتا رہا۔"),
    "Turkish": ("cp1254 iso8859_9 cp857 mac_turkish",
        "Dün akşam uzun süre nehir kıyısında oturup gelecekten konuştuk. Yaşlı balıkçı ağını onardı, torunu da kayıkları saydı.\n"
        "Yarın yağmur yağmazsa kitap ve ekmek almak için şehre gideceğiz. Çit için sarı boya da gerekiyor, İstanbul'dan geliyor."),
    "Azerbaijani": ("cp1254",
        "Dünən axşam çay kənarında oturub gələcəkdən danışdıq.".replace("ə", "e") + " Yaşlı balıqçı torunu düzeltdi, nevesi qayıqları saydı; sabah yağış yağmasa, şeherdeki kitab mağazasına gedeceyik."),
    "Polish": ("cp1250 iso8859_2 cp852 mac_latin2 iso8859_16",
        "Wczoraj wieczorem długo siedzieliśmy nad rzeką i rozmawialiśmy o przyszłości. Stary rybak naprawił sieć, a jego wnuk liczył łodzie.\n"
        "Jutro, jeśli nie będzie padać, pojedziemy do miasta po książki i chleb. Trzeba też kupić żółtą farbę do płotu."),
    "Czech": ("cp1250 iso8859_2 cp852 mac_latin2",
        "Včera večer jsme dlouho seděli u řeky a mluvili o budoucnosti. Starý rybář opravil síť a jeho vnuk počítal loďky.\n"
        "Zítra, pokud nebude pršet, pojedeme do města pro knihy a chléb. Ještě musíme koupit žlutou barvu na plot."),
    "Slovak": ("cp1250 iso8859_2 cp852",
        "Včera večer sme dlho sedeli pri rieke a rozprávali sa o budúcnosti. Starý rybár opravil sieť a jeho vnuk počítal člny.\n"
        "Zajtra, ak nebude pršať, pôjdeme do mesta po knihy a chlieb. Treba kúpiť aj žltú farbu na plot."),
    "Hungarian": ("cp1250 iso8859_2 cp852",
        "Tegnap este sokáig ültünk a folyó mellett és a jövőről beszélgettünk. Az öreg halász megjavította a hálóját, az unokája pedig a csónakokat számolta.\n"
        "Holnap, ha nem esik az eső, bemegyünk a városba könyvért és kenyérért. Sárga festék is kell a kerítéshez, meg ecset, ha fűrészelünk."),
    "Romanian": ("cp1250 iso8859_2 iso8859_16 cp852",
        "Aseară am stat mult timp lângă râu și am vorbit despre viitor. Bătrânul pescar și-a reparat plasa, iar nepotul lui număra bărcile.\n".replace("ș", "ş").replace("ț", "ţ")
        + "Mâine, dacă nu plouă, mergem în oraş după cărţi şi pâine. Trebuie să cumpărăm şi vopsea galbenă pentru gard."),
    "Croatian": ("cp1250 iso8859_2 cp852 mac_croatian",
        "Sinoć smo dugo sjedili uz rijeku i razgovarali o budućnosti. Stari ribar je popravio mrežu, a njegov unuk je brojao čamce.\n"
        "Sutra, ako ne bude kiše, idemo u grad po knjige i kruh. Treba kupiti i žutu boju za ogradu, pa ćemo se vratiti šumom."),
    "Slovene": ("cp1250 iso8859_2",
        "Sinoči smo dolgo sedeli ob reki in se pogovarjali o prihodnosti. Stari ribič je popravil mrežo, njegov vnuk pa je štel čolne.\n"
        "Jutri, če ne bo deževalo, gremo v mesto po knjige in kruh. Kupiti moramo še rumeno barvo za ograjo."),
    "German": ("cp1252 iso8859_15 cp850 cp437 mac_roman cp1250",
        "Gestern Abend saßen wir lange am Fluss und sprachen über die Zukunft. Der alte Fischer flickte sein Netz, während sein Enkel die Kähne zählte.\n"
        "Morgen, wenn es nicht regnet, fahren wir in die Stadt und kaufen Bücher und Brötchen. Wir müssen auch gelbe Farbe für den Zaun mitbringen, sonst ärgert sich Großmutter."),
    "French": ("cp1252 iso8859_15 cp850 cp437 mac_roman cp863",
        "Hier soir, nous sommes restés longtemps assis près de la rivière à parler de l'avenir. Le vieux pêcheur réparait son filet tandis que son petit-fils comptait les bateaux.\n"
        "Demain, s'il ne pleut pas, nous irons à la ville acheter des livres et du pain. Il faudra aussi de la peinture jaune pour la clôture, ça n'a pas été repeint depuis l'été."),
    "Spanish": ("cp1252 cp850 mac_roman",
        "Ayer por la tarde estuvimos mucho rato sentados junto al río hablando del futuro. El viejo pescador arregló la red y su nieto contaba las barcas.\n"
        "Mañana, si no llueve, iremos a la ciudad a comprar libros y pan. También hay que comprar pintura para la valla; ¿quién la pintará este año, el señor Núñez?"),
    "Portuguese": ("cp1252 cp850 cp860",
        "Ontem à noite ficámos muito tempo sentados junto ao rio a falar do futuro. O velho pescador arranjou a rede e o neto contava os barcos.\n"
        "Amanhã, se não chover, vamos à cidade comprar livros e pão. Também é preciso tinta amarela para a vedação; não há razão para esperar até ao verão, disse a avó João e a irmã."),
    "Italian": ("cp1252 mac_roman",
        "Ieri sera siamo rimasti a lungo seduti vicino al fiume a parlare del futuro. Il vecchio pescatore riparò la rete e il nipote contava le barche.\n"
        "Domani, se non pioverà, andremo in città a comprare libri e pane. Ci servirà anche la vernice gialla perché la staccionata è così vecchia che cadrà."),
    "Swedish": ("cp1252 cp850",
        "I går kväll satt vi länge vid ån och pratade om framtiden. Den gamle fiskaren lagade nätet medan hans barnbarn räknade båtarna.\n"
        "I morgon, om det inte regnar, åker vi till stan för att köpa böcker och bröd. Vi behöver också gul färg till staketet."),
    "Danish": ("cp1252 cp865",
        "I går aftes sad vi længe ved åen og talte om fremtiden. Den gamle fisker reparerede sit net, mens hans barnebarn talte bådene.\n"
        "I morgen, hvis det ikke regner, kører vi til byen for at købe bøger og brød. Vi skal også have gul maling til hegnet."),
    "Finnish": ("cp1252 cp850",
        "Eilen illalla istuimme pitkään joen rannalla ja puhuimme tulevaisuudesta. Vanha kalastaja korjasi verkkoaan, ja hänen pojanpoikansa laski veneitä.\n"
        "Huomenna, jos ei sada, menemme kaupunkiin ostamaan kirjoja ja leipää. Tarvitsemme myös keltaista maalia, sillä äiti pyysi sitä."),
    "Icelandic": ("cp1252 cp861 mac_iceland",
        "Í gærkvöldi sátum við lengi við ána og töluðum um framtíðina. Gamli sjómaðurinn gerði við netið sitt og barnabarnið hans taldi bátana.\n"
        "Á morgun, ef ekki rignir, förum við í bæinn að kaupa bækur og brauð. Það þarf líka gula málningu á girðinguna."),
    "Estonian": ("cp1257 iso8859_15 cp775",
        "Eile õhtul istusime kaua jõe ääres ja rääkisime tulevikust. Vana kalur parandas võrku ja tema lapselaps luges paate.\n"
        "Homme, kui vihma ei saja, läheme linna raamatuid ja leiba ostma. Aia jaoks on vaja ka kollast värvi, ütles vanaema üle õla."),
    "Latvian": ("cp1257 iso8859_13 cp775 iso8859_4",
        "Vakar vakarā mēs ilgi sēdējām pie upes un runājām par nākotni. Vecais zvejnieks laboja tīklu, bet viņa mazdēls skaitīja laivas.\n"
        "Rīt, ja nelīs, brauksim uz pilsētu pēc grāmatām un maizes. Vēl jāpērk dzeltena krāsa žogam, un šoreiz neaizmirsīsim ķieģeļus."),
    "Lithuanian": ("cp1257 iso8859_13 cp775 iso8859_4",
        "Vakar vakare ilgai sėdėjome prie upės ir kalbėjome apie ateitį. Senasis žvejys taisė tinklą, o jo anūkas skaičiavo valtis.\n"
        "Rytoj, jei nelis, važiuosime į miestą knygų ir duonos. Dar reikia nupirkti geltonų dažų tvorai, nes šįmet ją perdažysime."),
    "Maltese": ("iso8859_3",
        "Ilbieraħ filgħaxija qgħadna ħafna ħin ħdejn ix-xmara nitkellmu dwar il-ġejjieni. Is-sajjied xiħ sewwa x-xibka u n-neputi tiegħu għadd id-dgħajjes żgħar."),
    "Esperanto": ("iso8859_3",
        "Hieraŭ vespere ni longe sidis ĉe la rivero kaj parolis pri la estonteco. La maljuna fiŝkaptisto riparis sian reton, dum lia nepo nombris la boatojn; morgaŭ ni aĉetos panon ĝis la noktiĝo."),
    "Welsh": ("iso8859_14",
        "Neithiwr buom yn eistedd yn hir wrth yr afon yn siarad am y dyfodol. Trwsiodd yr hen bysgotwr ei rwyd, a bu ei ŵyr yn cyfrif y cychod; mae'r tŷ a'r dŵr yn oer, ond mae'r gŵr yn canu."),
    "Vietnamese": ("cp1258",
        "Tối qua chúng tôi ngồi rất lâu bên bờ sông và nói chuyện về tương lai. Ông lão đánh cá vá lưới còn cháu ông đếm thuyền.\n"
        "Ngày mai, nếu trời không mưa, chúng tôi sẽ vào thành phố mua sách và bánh mì."),
    "Thai": ("cp874 iso8859_11",
        "เมื่อวานตอนเย็นเรานั่งริมแม่น้ำนานมากและคุยกันเรื่องอนาคต ชาวประมงเฒ่าซ่อมแห ส่วนหลานของเขานับเรือ\n"
        "พรุ่งนี้ถ้าฝนไม่ตก เราจะเข้าเมืองไปซื้อหนังสือกับขนมปัง ต้องซื้อสีเหลืองสำหรับทารั้วด้วย"),
    "Japanese": ("cp932 euc_jp iso2022_jp shift_jisx0213 euc_jis_2004",
        "昨日の夕方、私たちは長いあいだ川のそばに座って将来のことを話した。年老いた漁師は網を直し、孫は舟を数えていた。\n"
        "明日は雨が降らなければ町へ本とパンを買いに行く。垣根に塗る黄色いペンキも必要だ。"),
    "Chinese, simplified": ("gb18030 gb2312 gbk hz",
        "昨天傍晚我们在河边坐了很久，谈论着未来。老渔夫修补渔网，他的孙子数着小船。\n"
        "明天如果不下雨，我们就进城去买书和面包。还要买些黄色的油漆来刷篱笆。"),
    "Chinese, traditional": ("big5 cp950 big5hkscs gb18030",
        "昨天傍晚我們在河邊坐了很久，談論著未來。老漁夫修補漁網，他的孫子數著小船。\n"
        "明天如果不下雨，我們就進城去買書和麵包。還要買些黃色的油漆來刷籬笆。"),
    "Korean": ("cp949 euc_kr iso2022_kr johab",
        "어제 저녁에 우리는 강가에 오래 앉아 앞날에 대해 이야기했다. 늙은 어부는 그물을 고치고 손자는 배를 세었다.\n"
        "내일 비가 오지 않으면 책과 빵을 사러 시내에 갈 것이다. 울타리에 칠할 노란 페인트도 필요하다."),
    "English": ("cp1252 mac_roman cp850",
        "Yesterday evening we sat by the river for a long time and talked about the future – as one does. “The old fisherman’s café,” she said, “has closed.”\n".replace("–", "-").replace("“", '"').replace("”", '"').replace("’", "'")
        + "Tomorrow, if it does not rain, we shall drive to town for books and bread; a naïve résumé, £5 and a jalapeño."),
    "English, Windows": ("cp1252 mac_roman",
        "Yesterday evening we sat by the river for a long time and talked about the future – as one does. “The old fisherman’s boat,” she said, “has gone.”\n"
        "Tomorrow, if it doesn’t rain, we’ll drive to town for books and bread."),
    "Russian, wide": ("utf_16_le utf_16_be utf_16 utf_32_le utf_32_be utf_32", "Вчера вечером мы долго сидели у реки, and talked about the future.\nЗавтра поедем в город."),
    "English, wide": ("utf_16_le utf_16_be utf_32_le", "Yesterday evening we sat by the river for a long time.\nTomorrow we drive to town."),
}  # fmt: skip


def files(seed: int):
    """Language, encoding, text and bytes of every file."""
    draw = random.Random(seed)
    for language, (codecs, text) in TEXTS.items():
        for number, codec in enumerate(codecs.split()):
            for form in ("sentence", "paragraph", "page"):
                if form == "page" and number % 2:
                    continue
                sentences = text.replace("\n", " ").split(". ")
                body = sentences[0] + ".\n" if form == "sentence" else text + "\n"
                if form == "page":
                    lines = [". ".join(draw.sample(sentences, len(sentences))) for _ in range(20)]
                    body = "\n".join(lines) + "\n"
                    if draw.random() < 0.5 and not codec.startswith("utf"):
                        body = body[:40] + "\x0c\x01" + body[40:]
                try:
                    yield language, codec, body, body.encode(codec)
                except UnicodeEncodeError:
                    body = body.encode(codec, "ignore").decode(codec)
                    yield language, codec, body, body.encode(codec)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--languages", help="only these, with commas between; `even` or `odd`: every second one")
    parser.add_argument("--shown", type=int, default=3)
    given = parser.parse_args()
    chosen = list(TEXTS)
    if given.languages in ("even", "odd"):
        chosen = chosen[given.languages == "odd" :: 2]
    elif given.languages:
        chosen = given.languages.split(",")
    counts, missed = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        for language, codec, text, data in files(given.seed):
            if (
                language not in chosen
                or (codec, data) == ("utf_8", data)
                or (data.isascii() and codec not in ("hz", "iso2022_jp", "iso2022_kr"))
            ):
                continue
            counts["files"] += 1
            counts[f"encoding {codec}"] += 1
            path = Path(folder) / "file"
            path.write_bytes(data)
            if not needs_encoding(data):
                counts["silent"] += 1
                missed.append(f"{language} in {codec}: read in silence")
                continue
            found = [data.decode(one, "replace").lstrip("\ufeff") for one in candidates(lambda: [data])[: given.shown]]
            right = [one for one in found if same(one, text)]
            counts["first"] += bool(found and same(found[0], text))
            counts["shown"] += bool(right)
            if not right:
                missed.append(f"{language} in {codec}, {len(data)} bytes: {candidates(lambda: [data])[: given.shown]}")
    encodings = sum(name.startswith("encoding ") for name in counts)
    print("\n".join(missed))
    result = {name: counts[name] for name in ("files", "silent", "first", "shown")} | {"encodings": encodings}
    print(json.dumps(result | {"shown, %": round(100 * counts["shown"] / counts["files"], 1)}))


def same(one: str, other: str) -> bool:
    """Whether two texts have the same letters; typographic marks may differ."""
    return [mark for mark in one if mark.isalpha()] == [mark for mark in other if mark.isalpha()]


if __name__ == "__main__":
    main()
