// The surprisal of letters as a curve: it falls within words and rises where one begins (Elman 1990, Fig. 6).

import { el, number, section, svg } from "../tools.js";

const STEP = 15;
const HEIGHT = 150;
const LAST = 160;

export function letters(desk) {
  const drawing = el("div", { class: "scroll drawing", tabindex: 0, role: "region", "aria-label": "letters by surprisal" });
  const refresh = () => {
    const marks = desk.marks.filter((mark) => mark.bits !== null).slice(-LAST);
    drawing.replaceChildren(marks.length ? draw(marks) : el("p", { class: "note" }, "Type a few words."));
    drawing.scrollLeft = drawing.scrollWidth;
  };
  const element = section("letters", "Letter by letter",
    "Bits of each letter; a ring marks where a word begins.", drawing);
  element.classList.add("wide");
  return { element, refresh, hears: ["scored"] };
}

function draw(marks) {
  const most = Math.max(8, ...marks.map((mark) => mark.bits));
  const y = (bits) => 12 + (1 - bits / most) * (HEIGHT - 40);
  const x = (place) => 26 + place * STEP;
  const width = x(marks.length) + 6;
  const grid = [0, most / 2, most].map((bits) => [
    svg("line", { class: "grid", x1: 22, x2: width, y1: y(bits), y2: y(bits) }),
    svg("text", { x: 18, y: y(bits) + 4, "text-anchor": "end", class: "axis" }, number(bits, 0)),
  ]);
  const path = marks.map((mark, place) => `${place ? "L" : "M"}${x(place)} ${y(mark.bits)}`).join("");
  const points = marks.flatMap((mark, place) => [
    svg("circle", { cx: x(place), cy: y(mark.bits), r: mark.begins ? 4 : 2, class: mark.begins ? "ring" : null },
      svg("title", {}, `${mark.ends ? "end of line" : mark.text}: ${number(mark.bits)} bits`)),
    svg("text", { x: x(place), y: HEIGHT - 8, "text-anchor": "middle" }, mark.ends ? "↵" : mark.text === " " ? "·" : mark.text),
  ]);
  return svg("svg", { class: "letters", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
    "aria-label": marks.map((mark) => `${mark.text} ${number(mark.bits, 1)}`).join(", ") },
  grid, svg("path", { d: path, class: "curve" }), points);
}
