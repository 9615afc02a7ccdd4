// A row of words by their surprisal, in which the arrow keys move: the heat map, and samples.

import { el, heat, number, odds } from "./tools.js";

let rows = 0;

/**
 * A listbox of words. `show(items)` replaces them, keeping the elements of an unchanged beginning; an item has text,
 * bits or null, begins (white space goes before it), ends (of a line), unknown, and label for screen readers.
 * `choose(place)` is called with the place of the word that was chosen, or null.
 */
export class WordRow {
  constructor(label, { spaced = true, choose = null } = {}) {
    this.items = [];
    this.spaced = spaced;
    this.choose = choose;
    this.name = `words-${(rows += 1)}`;
    this.current = null;
    this.element = el("div", {
      class: "heat", role: "listbox", "aria-label": label, tabindex: 0, dir: "auto",
      onkeydown: (event) => this.key(event),
      onclick: (event) => {
        const word = event.target.closest("[role=option]");
        if (word && this.choose) this.select(Number(word.dataset.place), true);
      },
    });
  }

  show(items) {
    let same = 0;
    const limit = Math.min(items.length, this.items.length);
    while (same < limit && alike(items[same], this.items[same])) same += 1;
    const nodes = this.element.children;
    while (nodes.length > same) this.element.lastElementChild.remove();
    this.element.append(...items.slice(same).map((item, at) => this.word(item, same + at)));
    this.items = items;
    if (this.current !== null && this.current >= items.length) this.select(null, false);
    else this.mark();
  }

  add(item) {
    this.element.append(this.word(item, this.items.length));
    this.items.push(item);
  }

  word(item, place) {
    const scored = item.bits !== null && item.bits !== undefined;
    const lead = item.ends ? "" : (/^\s+(?=\S)/.exec(item.text)?.[0] ?? "");  // uncoloured: a line may end after it
    const shown = item.ends ? "↵" : item.text.slice(lead.length);
    const said = `${item.ends ? "end of line" : item.text}: `
      + (scored ? `${number(item.bits)} bits, ${odds(item.bits)}` : "not read")
      + (item.unknown ? ", not in the vocabulary" : "") + (item.label ? `, ${item.label}` : "");
    const word = el("span", {
      class: `word${item.unknown ? " unknown" : ""}${item.held ? " held" : ""}${scored ? "" : " unread"}`,
      role: "option", id: `${this.name}-${place}`, "aria-selected": "false", "aria-label": said, title: said,
      "data-place": place, "data-bits": scored && (this.spaced || shown.length > 1) ? number(item.bits, 1) : null,
      style: scored ? { "--heat": heat(item.bits).toFixed(3) } : {},
    }, shown);
    const space = this.spaced && item.begins && place ? " " : lead;
    const group = el("span", { role: "presentation" }, space, word);
    if (item.ends || item.text.includes("\n")) group.append(el("br"));
    return group;
  }

  key(event) {
    const last = this.items.length - 1;
    const at = this.current;
    const moves = {
      ArrowRight: () => (at === null ? 0 : Math.min(last, at + 1)),
      ArrowLeft: () => (at === null ? last : Math.max(0, at - 1)),
      Home: () => 0,
      End: () => null,
    };
    if (last < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in moves) {
      event.preventDefault();
      this.select(moves[event.key](), event.key === "End" || Boolean(this.follows));
    } else if ((event.key === "Enter" || event.key === " ") && at !== null && this.choose) {
      event.preventDefault();
      this.choose(at);
    }
  }

  select(place, chosen) {
    this.current = place;
    this.mark();
    if (chosen && this.choose) this.choose(place);
  }

  mark() {
    for (const one of this.element.querySelectorAll("[aria-selected=true]")) one.setAttribute("aria-selected", "false");
    const word = this.current === null ? null : document.getElementById(`${this.name}-${this.current}`);
    if (word) word.setAttribute("aria-selected", "true");
    if (word) this.element.setAttribute("aria-activedescendant", word.id);
    else this.element.removeAttribute("aria-activedescendant");
  }
}

function alike(one, other) {
  return one.text === other.text && one.bits === other.bits && one.begins === other.begins && one.ends === other.ends
    && one.unknown === other.unknown && one.held === other.held && one.label === other.label;
}
