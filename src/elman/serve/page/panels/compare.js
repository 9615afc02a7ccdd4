// Two models side by side: the difference by word, and what each expects next.

import { el, labelled, newest, number, percent, section, shownToken } from "../tools.js";

export function compare(desk) {
  const others = desk.opened.runs.filter((run) => run.kind === "text" && run.name !== desk.run.name);
  const select = el("select", {}, others.map((run) => el("option", { value: run.name }, run.name)));
  const verdict = el("p", { class: "note", role: "status" });
  const words = el("p", { class: "differences" });
  const sides = el("div", { class: "sides" });
  const refresh = newest(() => desk.attempt(async () => {
    const other = select.value;
    const question = { run: desk.run.name, other, text: desk.text };
    const found = await desk.backend.compare(question, desk.left.signal);
    const asked = [desk.run.name, other].map((run) => desk.backend.next({ run, text: desk.text, count: 8 }, desk.left.signal));
    const next = await Promise.all(asked);
    verdict.textContent = summary(found, desk.run.name, other);
    words.replaceChildren(...found.words.flatMap((word, at) => (desk.run.spelt && !found.same_words ? [shown(word)] : [at ? " " : "", shown(word)])));
    sides.replaceChildren(...next.map((one, at) => el("div", {}, el("h3", {}, at ? other : desk.run.name),
      el("ol", { class: "bars plain" }, one.words.map((word) => el("li", { style: { "--width": word.probability / one.words[0].probability } },
        el("span", { class: "token" }, shownToken(word.token)), el("span", { class: "rail" }, el("i")),
        el("span", { class: "share" }, percent(word.probability))))))));
  }));
  select.addEventListener("change", refresh);
  const key = el("p", { class: "note key" }, el("i", { class: "first" }), ` ${desk.run.name} expected it more `,
    el("i", { class: "second" }), " the other did");
  const element = section("compare", "Two models", null, labelled("beside", select), verdict, words, key, sides);
  element.classList.add("wide");
  return { element, refresh, hears: ["scored"] };
}

function shown(word) {
  const difference = word.difference;
  const text = word.unknown ? `${word.word}: not in the vocabulary of one of them` : difference === null
    ? `${word.word}: ${word.first === null ? "not read" : `${number(word.first)} bits`}`
    : `${word.word}: ${number(word.first)} and ${number(word.second)} bits`;
  return el("span", {
    class: `word ${difference === null ? "" : difference > 0 ? "first" : "second"}`, title: text, "aria-label": text,
    "data-bits": difference === null ? null : `${difference > 0 ? "+" : "−"}${number(Math.abs(difference), 1)}`,
    style: { "--heat": difference === null ? 0 : Math.min(1, Math.abs(difference) / 6).toFixed(3) },
  }, word.word);
}

function summary(found, first, second) {
  if (!found.words.length) return "Type a text.";
  const totals = `${first}: ${number(found.first, 1)} bits, ${second}: ${number(found.second, 1)} bits`;
  if (!found.same_words) return `${totals}. The two read other words here, so that words cannot be compared.`;
  if (found.unknown.some(Boolean)) {
    const lacking = found.unknown.map((count, at) => (count ? `${count} to ${at ? second : first}` : "")).filter(Boolean);
    return `${totals}. Words are unknown (${lacking.join(", ")}), so that the sums cannot be compared.`;
  }
  const gap = found.second - found.first;
  return `${totals}; ${gap > 0 ? first : second} needs ${number(Math.abs(gap), 1)} bits fewer.`;
}
