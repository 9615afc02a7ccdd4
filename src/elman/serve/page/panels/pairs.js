// Minimal pairs: which of two sentences is the more probable one?

import { el, labelled, number, section } from "../tools.js";

export function pairs(desk) {
  const good = el("input", { type: "text", autocomplete: "off", spellcheck: "false", dir: "auto" });
  const bad = el("input", { type: "text", autocomplete: "off", spellcheck: "false", dir: "auto" });
  const list = el("ul", { class: "judged" });
  const form = el("form", { class: "two" }, labelled("grammatical", good), labelled("ungrammatical", bad),
    el("button", { type: "submit" }, "Judge"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    desk.attempt(async () => {
      if (!good.value.trim() || !bad.value.trim()) throw new Error("Write both sentences.");
      const pair = { good: good.value, bad: bad.value };
      const found = await desk.backend.pairs({ run: desk.run.name, pairs: [pair] }, desk.left.signal);
      list.prepend(row(pair, found.pairs[0]));
    });
  });
  const element = section("pairs", "Minimal pairs", "Two sentences that differ in one respect, each with its end.",
    form, list);
  return { element };
}

function row(pair, judged) {
  if (judged.correct === null) {
    return el("li", { class: "same" }, `“${pair.good}” and “${pair.bad}” are the same to this model.`);
  }
  const most = Math.max(judged.good, judged.bad);
  const side = (text, bits, kind) => el("div", { class: `side ${kind}`, style: { "--width": bits / most } },
    el("span", { class: "sentence" }, text), el("span", { class: "rail" }, el("i")),
    el("span", { class: "share" }, `${number(bits, 1)} bits`));
  const verdict = judged.correct ? "✓ the grammatical one is more probable" : "✗ the ungrammatical one is more probable";
  const unknown = judged.unknown.length ? `; not in the vocabulary: ${judged.unknown.join(", ")}` : "";
  return el("li", { class: judged.correct ? "right" : "wrong" }, el("p", { class: "verdict" },
    `${verdict}, by ${number(Math.abs(judged.good - judged.bad), 1)} bits${unknown}`),
  side(pair.good, judged.good, "good"), side(pair.bad, judged.bad, "bad"));
}
