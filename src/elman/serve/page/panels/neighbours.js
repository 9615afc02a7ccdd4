// The words whose vectors are nearest to a word's.

import { el, labelled, newest, number, section, shownToken } from "../tools.js";

export function neighbours(desk) {
  const word = el("input", { type: "text", autocomplete: "off", spellcheck: "false", dir: "auto" });
  const list = el("ol", { class: "bars plain" });
  const note = el("p", { class: "note", role: "status" });
  const ask = newest(async () => {
    const wanted = word.value.trim() || word.value;
    if (!wanted) return;
    try {
      const found = await desk.backend.neighbours({ run: desk.run.name, word: wanted, count: 12 }, desk.left.signal);
      note.textContent = found.known ? ""
        : `“${found.word}” is not in the vocabulary${found.neighbours.length ? "; its spelling has a vector" : ""}.`;
      list.replaceChildren(...found.neighbours.map((one) => el("li", { style: { "--width": Math.max(0, one.cosine) } },
        el("span", { class: "token" }, shownToken(one.word)), el("span", { class: "rail" }, el("i")),
        el("span", { class: "share" }, number(one.cosine)))));
    } catch (error) {
      if (error.name === "AbortError") return;
      list.replaceChildren();
      note.textContent = error.message;
    }
  });
  word.addEventListener("input", ask);
  const refresh = () => {
    const place = desk.position === null ? null : desk.marks.find((mark) => mark.at === desk.position);
    if (!place || place.ends) return;
    word.value = place.text;
    ask();
  };
  const element = section("neighbours", "Nearest words", "By the cosine of the angle between word vectors. A word that"
    + " is chosen in the text is looked up.", labelled("word", word), note, list);
  return { element, refresh, hears: ["place"] };
}
