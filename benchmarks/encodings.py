"""Files in many encodings, made from the paragraphs below, and whether the right one is among those that are shown.

python benchmarks/encodings.py [--half A|B] [--misses]

Every language is written in its encodings, in 5, 40 and 400 lines, with and without a control character. Counted are
the files that are read wrongly in silence, those whose right encoding (or one that gives the same text) is shown, and
those where it is the first. The languages at even places (A) chose the rule; those at odd places (B) were held out.
"""

import argparse
import contextlib
import io
import random
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from elman.data.text.guessing import propose
from elman.data.text.utf8 import read_text
from elman.errors import UserError

WESTERN = "cp1252 latin_1 iso8859_15 mac_roman cp850 cp437"
CENTRAL = "cp1250 iso8859_2 cp852 mac_latin2"
NORDIC = "cp1252 iso8859_10 cp865 mac_roman"
BALTIC = "cp1257 iso8859_13 iso8859_4 cp775"
CYRILLIC = "cp1251 koi8_r iso8859_5 cp866 mac_cyrillic"
TEXTS: dict[str, tuple[str, str]] = {
    "Russian": (CYRILLIC, "Утром старик вышел из дома и пошёл к реке. Вода была холодная, а над лесом стоял туман. — Куда ты идёшь? — спросила соседка. Он ничего не ответил, только махнул рукой. Через час на берегу собрались дети, и каждый хотел увидеть лодку. Она лежала в траве, старая, с дырой в борту. Никто не помнил, кто её построил."),
    "Ukrainian": ("cp1251 koi8_u iso8859_5 cp1125", "Уранці бабуся пекла хліб, і запах його стояв на всю вулицю. Ми бігли зі школи й знали, що нас чекає їжа. Увечері її син повертався з поля та розповідав, яка цього року пшениця. Жоден із нас не думав про те, що колись усе зміниться. Зимою річка замерзала, і діти каталися на льоду."),
    "Bulgarian": ("cp1251 iso8859_5 mac_cyrillic cp866", "Селото лежи в подножието на планината и зиме пътят до него е затворен. Хората си помагат, носят дърва и разказват стари истории. Когато дойде пролетта, първо цъфтят сливите, а после всичко ще бъде зелено. Децата тичат към реката и търсят риба. Всяка вечер камъкът пред къщата още е топъл."),
    "Serbian": ("cp1251 cp855 iso8859_5", "Пред кућом је стајао стари орах, а испод њега дрвени сто. Деда је сваког јутра пио кафу и читао новине. Ђаци су пролазили путем и поздрављали га. Љубав према овој земљи, говорио је, учи се полако. Увече су долазили комшије и причали о послу, о киши и о жетви."),
    "Greek": ("cp1253 iso8859_7 cp737 cp869 mac_greek", "Το πρωί ο γέρος άνοιξε το παράθυρο και κοίταξε τη θάλασσα. Ο αέρας ήταν δροσερός και τα καΐκια γύριζαν στο λιμάνι. Η γυναίκα του έφτιαχνε καφέ και σιγοτραγουδούσε. Κανείς δεν ήξερε πότε θα έρθει το πλοίο με τα γράμματα. Τα παιδιά έπαιζαν στην πλατεία ως το βράδυ."),
    "Hebrew": ("cp1255 iso8859_8 cp862", "בבוקר יצא הזקן מן הבית והלך אל הים. הרוח הייתה קרירה והגלים היו שקטים. הילדים שיחקו על החוף ואספו צדפים בתוך דלי קטן. אחר הצהריים חזרו כולם הביתה ואכלו מרק חם. אף אחד לא שאל מתי תבוא הספינה, כי כולם ידעו שהיא כבר לא תחזור."),
    "Arabic": ("cp1256 iso8859_6 mac_arabic", "خرج الرجل من بيته في الصباح وذهب إلى السوق ليشتري الخبز والفاكهة. كان الجو جميلا والناس يتحدثون عن المطر الذي سقط في الليل. جلس الأطفال تحت الشجرة يستمعون إلى قصة قديمة. وعندما عاد الرجل إلى البيت وجد ابنته تنتظره أمام الباب، فقال لها إن الربيع قد جاء."),
    "Persian": ("cp1256", "پیرمرد هر روز صبح از خانه بیرون می آمد و به باغ می رفت. درختان گیلاس شکوفه کرده بودند و پرندگان آواز می خواندند. چند کودک کنار جوی آب بازی می کردند و گاهی به او سلام می گفتند. او لبخند می زد و پاسخ می داد. شب که می شد، همه دور هم جمع می شدند و قصه های گذشته را می شنیدند."),
    "Turkish": ("cp1254 iso8859_9 cp857 mac_turkish", "Sabahleyin yaşlı adam evden çıktı ve denize doğru yürüdü. Hava soğuktu, gökyüzünde bulutlar vardı. Çocuklar okula gidiyor, annelerine el sallıyorlardı. Öğleden sonra yağmur başladı ve herkes içeri kaçtı. Akşam olunca ışıklar yandı, şehir sessizleşti. Kimse geminin ne zaman geleceğini bilmiyordu."),
    "Polish": (CENTRAL + " iso8859_16", "Rano dziadek wyszedł z domu i poszedł nad rzekę. Woda była zimna, a nad łąką unosiła się mgła. Dzieci biegły ścieżką i śmiały się głośno. Każde z nich chciało zobaczyć łódź, która leżała w trawie. Nikt już nie pamiętał, kto ją zbudował. Wieczorem wszyscy usiedli przy stole i jedli gęstą zupę."),
    "Czech": (CENTRAL, "Ráno dědeček vyšel z domu a šel k řece. Voda byla studená a nad loukou se převalovala mlha. Děti běžely po pěšině a hlasitě se smály. Každé chtělo vidět loď, která ležela v trávě. Nikdo si už nepamatoval, kdo ji postavil. Večer všichni seděli u stolu a jedli hustou polévku, protože přišla zima."),
    "Slovak": ("cp1250 iso8859_2 cp852", "Ráno starý otec vyšiel z domu a kráčal k rieke. Voda bola studená a nad lúkou sa vznášala hmla. Deti bežali po chodníku a hlasno sa smiali. Každé chcelo vidieť loďku, ktorá ležala v tráve. Nikto si už nepamätal, kto ju postavil. Večer všetci sedeli pri stole a jedli hustú polievku."),
    "Hungarian": (CENTRAL, "Reggel az öregember kilépett a házból, és lement a folyóhoz. A víz hideg volt, a rét fölött köd ült. A gyerekek az ösvényen futottak és hangosan nevettek. Mindegyik látni akarta a csónakot, amely a fűben feküdt. Senki sem tudta már, ki építette. Este mindnyájan leültek az asztalhoz, és sűrű levest ettek."),
    "Romanian": ("cp1250 iso8859_2 cp852 mac_romanian", "Dimineaţa bătrânul a ieşit din casă şi a coborât la râu. Apa era rece, iar deasupra câmpului plutea ceaţa. Copiii alergau pe cărare şi râdeau. Fiecare voia să vadă barca, aşezată în iarbă. Nimeni nu mai ştia cine a făcut-o. Seara s-au strâns cu toţii la masă şi au mâncat o supă groasă."),
    "Croatian": (CENTRAL + " mac_croatian", "Ujutro je djed izašao iz kuće i pošao prema rijeci. Voda je bila hladna, a nad livadom se dizala magla. Djeca su trčala stazom i glasno se smijala. Svako je željelo vidjeti čamac koji je ležao u travi. Nitko se više nije sjećao tko ga je sagradio. Navečer su svi sjeli za stol i jeli gustu juhu, jer će doći zima."),
    "German": (WESTERN, "Am Morgen verließ der alte Mann das Haus und ging zum Fluß hinunter. Das Wasser war kühl, und über den Wiesen hing der Nebel. Die Kinder liefen den Weg entlang und lachten. Jedes wollte das Boot sehen, das im hohen Gras lag. Niemand wußte mehr, wer es gebaut hatte. Abends aßen alle gemeinsam und erzählten sich schöne Märchen."),
    "French": (WESTERN + " utf_7", "Le matin, le vieil homme sortit de la maison et descendit à la rivière. L'eau était fraîche, et le brouillard flottait au-dessus des prés. Les élèves couraient sur le sentier en riant. Chacun voulait voir la barque, couchée dans l'herbe. Personne ne se rappelait qui l'avait bâtie. Le soir, tout le monde dînait très tôt, près de la fenêtre."),
    "Spanish": (WESTERN, "Por la mañana el anciano salió de la casa y bajó al río. El agua estaba fría y la niebla cubría los prados. Los niños corrían por el camino y reían. ¿Quién construyó aquella barca? Nadie lo sabía. Al anochecer, después de la cena, contaban historias de otros años, y también cantaban en español."),
    "Portuguese": ("cp1252 latin_1 cp860 mac_roman", "De manhã o velho saiu de casa e desceu até ao rio. A água estava fria e o nevoeiro cobria os campos. As crianças corriam pelo caminho e riam. Ninguém sabia já quem construíra a embarcação. À noite todos se sentavam à mesa, comiam pão e contavam histórias; não havia pressa, só a canção da avó."),
    "Italian": ("cp1252 latin_1 mac_roman cp850", "La mattina il vecchio uscì di casa e andò verso il fiume. L'acqua era fredda e la nebbia copriva i prati. Perché nessuno sapeva più chi avesse costruito la barca? I bambini correvano e ridevano: così è la felicità, diceva. Poi la sera si metteva a tavola e raccontava la verità, o quasi; il lunedì però taceva."),
    "Swedish": (NORDIC, "På morgonen gick den gamle mannen ut ur huset och ner till ån. Vattnet var kallt och över ängarna låg dimman. Barnen sprang längs stigen och skrattade högt. Var och en ville se båten, som låg i gräset. Ingen mindes längre vem som hade byggt den. På kvällen åt alla tillsammans vid köksbordet."),
    "Danish": (NORDIC, "Om morgenen gik den gamle mand ud af huset og ned til åen. Vandet var koldt, og over engene lå tågen. Børnene løb ad stien og lo højt. Hver især ville se båden, som lå i græsset. Ingen huskede længere, hvem der havde bygget den. Om aftenen spiste alle sammen ved køkkenbordet og sagde ikke så meget."),
    "Icelandic": ("cp1252 cp861 mac_iceland iso8859_10", "Um morguninn gekk gamli maðurinn út úr húsinu og niður að ánni. Vatnið var kalt og þokan lá yfir engjunum. Börnin hlupu eftir stígnum og hlógu hátt. Hvert þeirra vildi sjá bátinn sem lá í grasinu. Enginn mundi lengur hver hafði smíðað hann. Um kvöldið borðuðu allir saman við eldhúsborðið og sögðu sögur."),
    "Finnish": ("cp1252 latin_1 mac_roman cp850", "Aamulla vanha mies lähti talosta ja käveli joelle. Vesi oli kylmää, ja niittyjen yllä leijui sumu. Lapset juoksivat polkua pitkin ja nauroivat ääneen. Jokainen tahtoi nähdä veneen, joka makasi heinikossa. Kukaan ei enää muistanut, kuka sen oli tehnyt. Illalla kaikki söivät yhdessä pöydän ääressä."),
    "Estonian": ("cp1257 iso8859_13 cp775 cp1252", "Hommikul läks vana mees majast välja ja kõndis jõe äärde. Vesi oli külm ning niitude kohal hõljus udu. Lapsed jooksid mööda rada ja naersid valjusti. Igaüks tahtis näha paati, mis lebas rohus. Keegi ei mäletanud enam, kes selle oli ehitanud. Õhtul sõid kõik koos köögis ja rääkisid öösel edasi."),
    "Latvian": (BALTIC, "No rīta vecais vīrs izgāja no mājas un devās uz upi. Ūdens bija auksts, un pār pļavām klājās migla. Bērni skrēja pa taku un skaļi smējās. Katrs gribēja redzēt laivu, kas gulēja zālē. Neviens vairs neatcerējās, kurš to bija uzcēlis. Vakarā visi kopā ēda pie galda un stāstīja pasakas par ķēniņu."),
    "Lithuanian": (BALTIC, "Rytą senelis išėjo iš namų ir nuėjo prie upės. Vanduo buvo šaltas, o virš pievų kilo rūkas. Vaikai bėgo takeliu ir garsiai juokėsi. Kiekvienas norėjo pamatyti valtį, gulinčią žolėje. Niekas jau neprisiminė, kas ją pastatė. Vakare visi susėdo prie stalo ir valgė tirštą sriubą, nes lauke šalo."),
    "Vietnamese": ("cp1258", "Buổi sáng ông lão ra khỏi nhà và đi xuống sông. Nước lạnh, sương mù phủ trên cánh đồng. Trẻ con chạy theo con đường nhỏ và cười vang. Đứa nào cũng muốn xem chiếc thuyền nằm trong cỏ. Không ai còn nhớ người nào đã đóng nó. Buổi tối mọi người cùng ngồi ăn cơm và kể chuyện ngày xưa."),
    "Thai": ("cp874 tis_620 iso8859_11", "ตอนเช้าชายชราออกจากบ้านแล้วเดินไปที่แม่น้ำ น้ำเย็นมากและหมอกปกคลุมทุ่งนา เด็กๆ วิ่งไปตามทางและหัวเราะเสียงดัง ทุกคนอยากเห็นเรือที่อยู่ในพงหญ้า ไม่มีใครจำได้ว่าใครเป็นคนสร้าง ตอนเย็นทุกคนนั่งกินข้าวด้วยกันและเล่าเรื่องเก่า"),
    "Japanese": ("cp932 shift_jis euc_jp iso2022_jp iso2022_jp_2 shift_jis_2004 euc_jis_2004", "朝、老人は家を出て川へ歩いて行った。水は冷たく、野原には霧がかかっていた。子供たちは小道を走りながら大きな声で笑った。みんな草の中の舟を見たがっていた。誰がそれを作ったのか、もう覚えている人はいなかった。夜になると、家族はテーブルを囲んでスープを飲み、昔の話をした。"),
    "Simplified Chinese": ("gb18030 gbk gb2312 hz utf_7", "早上,老人走出家门,慢慢地走到河边。水很冷,田野上有一层雾。孩子们沿着小路奔跑,大声地笑着。每个人都想看看草丛里的那条船。已经没有人记得是谁造的了。晚上,大家一起坐在桌子旁边吃饭,讲从前的故事。没有人问冬天什么时候会来。"),
    "Traditional Chinese": ("big5 cp950 big5hkscs", "早上,老人走出家門,慢慢地走到河邊。水很冷,田野上有一層霧。孩子們沿著小路奔跑,大聲地笑著。每個人都想看看草叢裡的那條船。已經沒有人記得是誰造的了。晚上,大家一起坐在桌子旁邊吃飯,講從前的故事。沒有人問冬天什麼時候會來。"),
    "Korean": ("cp949 euc_kr johab iso2022_kr", "아침에 노인은 집을 나서 강으로 걸어갔다. 물은 차가웠고 들판에는 안개가 끼어 있었다. 아이들은 오솔길을 달리며 크게 웃었다. 모두 풀밭에 놓인 배를 보고 싶어 했다. 누가 그것을 만들었는지 기억하는 사람은 이제 없었다. 저녁이면 모두 둘러앉아 밥을 먹고 옛날이야기를 나누었다."),
    "Kazakh": ("ptcp154 kz1048", "Таңертең қарт үйден шығып, өзенге қарай жүрді. Су салқын еді, даланың үстінде тұман тұрды. Балалар жолмен жүгіріп, қатты күлді. Әрқайсысы шөптің арасындағы қайықты көргісі келді. Оны кім жасағанын ешкім білмейтін. Кешке бәрі бірге отырып ас ішті, ескі әңгімелер айтты. Ғасырлар осылай өтті."),
    "Tajik": ("koi8_t", "Саҳарӣ пирамард аз хона баромад ва ба сӯи дарё рафт. Об хунук буд ва болои дашт туман меистод. Кӯдакон аз пайраҳа медавиданд ва баланд механдиданд. Ҳар кас мехост қаиқро бинад, ки дар алаф хобида буд. Ҳеҷ кас дигар дар хотир надошт, ки онро кӣ сохтааст. Шом ҳама якҷоя хӯрок хӯрданд ва қиссаҳо гуфтанд."),
    "Maltese": ("iso8859_3", "Filgħodu ix-xiħ ħareġ mid-dar u niżel lejn ix-xmara. L-ilma kien kiesaħ u ċ-ċpar kien jgħatti l-għelieqi. It-tfal ġrew mat-triq u daħku. Kulħadd ried jara d-dgħajsa li kienet fil-ħaxix. Ħadd ma kien jiftakar min bniha. Filgħaxija kulħadd kiel flimkien ħdejn il-mejda u semgħu ħrejjef żgħar u kbar."),
    "Esperanto": ("iso8859_3", "Matene la maljunulo eliris el la domo kaj iris al la rivero. La akvo estis malvarma, kaj super la kampo ŝvebis nebulo. La infanoj kuris laŭ la vojo kaj laŭte ridis. Ĉiu volis vidi la boaton, kiu kuŝis en la herbo. Neniu plu memoris, kiu ĝin faris. Vespere ĉiuj manĝis kune ĉe la tablo kaj aŭdis ĝojajn rakontojn."),
    "Welsh": ("iso8859_14", "Yn y bore aeth yr hen ŵr o'r tŷ ac i lawr at yr afon. Roedd y dŵr yn oer a'r niwl dros y caeau. Rhedai'r plant ar hyd y llwybr gan chwerthin. Pan ddaeth y nos, clywid sŵn y gwynt yn y tŵr, a chân hen ŵyl o bell. Nid oedd neb yn cofio pwy a'i hadeiladodd; âi pawb i gysgu'n gynnar."),
    "English": ("cp1252 mac_roman utf_16_le utf_16_be utf_32_le utf_32_be cp037 cp500", "In the morning the old man left the house and went down to the river. \u201cWhere are you going?\u201d asked the neighbour \u2014 but he didn\u2019t answer. The children\u2019s laughter came from the path. Nobody remembered who had built the boat, and nobody asked. \u201cIt\u2019s cold,\u201d he said at last, \u201cand it\u2019s late.\u201d"),
}  # fmt: skip
"""The encodings of a language, by the names of Python, and a paragraph in it."""


def made(languages: list[str]) -> Iterator[tuple[str, str, str, bytes]]:
    """Files: the language and length, the encoding, the text, its bytes; they differ from UTF-8 and each other."""
    draw = random.Random(5)
    for language in languages:
        codecs, paragraph = TEXTS[language]
        sentences = paragraph.replace("。", "。 ").split(" ")
        for codec in codecs.split():
            for size in (5, 40, 400):
                lines = [" ".join(draw.choices(sentences, k=9)) if size > 5 else "" for _ in range(size)]
                if size == 5:
                    cut = -(-len(sentences) // 5)
                    lines = [" ".join(sentences[at * cut : at * cut + cut]) for at in range(5)]
                for control in ("", "\x1a"):
                    text = "\n".join(lines) + control + "\n"
                    data = (vietnamese(text) if codec == "cp1258" else text).encode(codec, "ignore")
                    yield f"{language} {size}{' control' if control else ''}", codec, data.decode(codec), data


def vietnamese(text: str) -> str:
    """Text as Windows-1258 has it: letters with their circumflex, breve or horn, and tones as marks after them."""
    found = []
    for letter in unicodedata.normalize("NFC", text):
        parts = unicodedata.normalize("NFD", letter)
        tones = [mark for mark in parts if mark in "\u0300\u0301\u0303\u0309\u0323"]
        rest = unicodedata.normalize("NFC", "".join(mark for mark in parts if mark not in tones))
        found.append(rest + "".join(tones))
    return "".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--half", choices=["A", "B"])
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    languages = list(TEXTS)[{"A": slice(0, None, 2), "B": slice(1, None, 2), None: slice(None)}[options.half]]
    total = silent = shown = first = 0
    codecs = set()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text.txt")
        for what, codec, text, data in made(languages):
            total += 1
            codecs.add(codec)
            path.write_bytes(data)
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    wrong = read_text(path).splitlines() != text.splitlines()
                silent, shown, first = silent + wrong, shown + (not wrong), first + (not wrong)
                if wrong and options.misses:
                    print(f"silent  {what:30}{codec}")
                continue
            except UserError:
                pass
            found = propose(lambda data=data: [data])
            same = [one for one in found if data.decode(one, "replace") == text]
            shown, first = shown + bool(same), first + (same[:1] == found[:1] and bool(same))
            if options.misses and (not same or same[0] != found[0]):
                print(f"{'second' if same else 'absent':8}{what:30}{codec:15}{' '.join(found)}")
    print(f"{total} files in {len(codecs)} encodings: {silent} read wrongly in silence, the right one shown for {shown}"
          f" ({shown / total:.1%}), first for {first} ({first / total:.1%})")  # fmt: skip


if __name__ == "__main__":
    main()
