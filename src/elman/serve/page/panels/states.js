// The path of the hidden state in the plane of its principal components, and the spectral radius of J.

import { el, labelled, newest, number, percent, section, svg } from "../tools.js";

const WIDTH = 460;
const HEIGHT = 320;
const EDGE = 34;
const NAMED = 14;
const LETTER = 6.4;  // the width of a letter
const AROUND = [[1, -1], [1, 0], [1, 1], [-1, -1], [-1, 0], [-1, 1], [0, -1.2], [0, 1.2]];  // where a name may stand

export function states(desk) {
  const drawing = el("div", { class: "drawing" });
  const caption = el("p", { class: "note" });
  const radii = el("div", { class: "radii" });
  const layer = el("select", {}, Array.from({ length: desk.run.layers }, (_, at) =>
    el("option", { value: at, selected: at === desk.run.layers - 1 }, at ? `layer ${at}` : "input vectors")));
  const refresh = newest(() => desk.attempt(async () => {
    const question = desk.question({ layer: Number(layer.value) });
    const found = await desk.backend.states(question, desk.left.signal);
    drawing.replaceChildren(draw(found, chosen(desk)));
    caption.textContent = `Components 1 and 2 have ${found.shares.slice(0, 2).map(percent).join(" and ")} of the variance`
      + ` of the states along texts that the model drew. Norm of the last state: ${number(found.norms.at(-1))}.`;
    radii.replaceChildren(...(found.radii.length ? spectral(found.radii) : []));
  }));
  layer.addEventListener("change", refresh);
  const element = section("states", "The path of the state", null, labelled("states of", layer), drawing, caption, radii);
  return { element, refresh, hears: ["scored", "place"] };
}

/** The number of the point after the word before the place that was chosen. */
function chosen(desk) {
  if (desk.position === null) return null;
  const read = desk.marks.filter((mark) => mark.at !== null);
  const at = read.findIndex((mark) => mark.at === desk.position);
  return at < 0 ? null : at - read.length;
}

function draw(found, place) {
  const { points, labels } = found;
  const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis] ?? 0));
  const scale = (values, size, flipped) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const span = high - low || 1;
    return (value) => {
      const at = EDGE + ((value - low) / span) * (size - 2 * EDGE);
      return flipped ? size - at : at;
    };
  };
  const [x, y] = [scale(xs, WIDTH, false), scale(ys, HEIGHT, true)];
  const at = points.map((_, place) => [x(xs[place]), y(ys[place])]);
  const current = place === null ? at.length - 1 : Math.max(0, at.length - 1 + place);
  const shade = (place) => Math.max(0.15, 1 - (at.length - 1 - place) / 24).toFixed(2);
  const lines = at.slice(1).flatMap(([x2, y2], place) => {
    const [x1, y1] = at[place];
    const turn = (180 / Math.PI) * Math.atan2(y2 - y1, x2 - x1);
    const middle = `translate(${(x1 + x2) / 2} ${(y1 + y2) / 2}) rotate(${turn})`;
    const opacity = shade(place + 1);
    const line = svg("line", { x1, y1, x2, y2, opacity });
    return Math.hypot(x2 - x1, y2 - y1) < 16 ? [line]
      : [line, svg("path", { class: "arrow", d: "M-4 -3.5 L4 0 L-4 3.5 Z", transform: middle, opacity })];
  });
  const dots = at.map(([cx, cy], place) => svg("circle", {
    cx, cy, r: place === current ? 6 : 3.2, class: place === current ? "current" : null, opacity: shade(place),
  }, svg("title", {}, labels[place] ? `after ${labels[place]}` : "before the text")));
  const taken = at.map(([left, top]) => [left - 4, top - 4, left + 4, top + 4]);
  const names = at.map((_, place) => place).reverse().filter((place) => place === current
    || at.length - 1 - place < NAMED).map((place) => {
    const name = labels[place].slice(0, 18) || "begin";
    const width = LETTER * [...name].reduce((sum, one) => sum + (one > "\u2e7f" ? 2 : 1), 0);
    const spots = AROUND.map(([right, down]) => {
      const left = at[place][0] + (right > 0 ? 7 : right < 0 ? -7 - width : -width / 2);
      const top = at[place][1] - 6 + down * 12;
      return [left, top, left + width, top + 12];
    });
    const covered = ([left, top, end, bottom]) => taken.reduce((sum, [l, t, e, b]) => sum
      + Math.max(0, Math.min(end, e) - Math.max(left, l)) * Math.max(0, Math.min(bottom, b) - Math.max(top, t)),
    left < 0 || end > WIDTH || top < 0 || bottom > HEIGHT ? 1e4 : 0);
    const spot = spots.reduce((one, other) => (covered(other) < covered(one) ? other : one));
    taken.push(spot);
    return svg("text", { x: spot[0], y: spot[1] + 10, class: place === current ? "current" : null,
      opacity: place === current ? 1 : shade(place) }, name);
  });
  const text = labels.slice(-NAMED).join(" ");
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "path", role: "img",
    "aria-label": `The path of the state in two dimensions, the last words: ${text}` }, lines, dots, names);
}

function spectral(radii) {
  const most = Math.max(1.2, ...radii);
  return [
    el("h3", {}, "Spectral radius of J"),
    el("p", { class: "note" }, "The linearised recurrence at h = 0, by layer; below 1 small states decay without input."),
    el("ol", { class: "bars plain" }, radii.map((radius, at) => el("li", {
      style: { "--width": radius / most, "--one": 1 / most },
    }, el("span", { class: "token" }, `layer ${at + 1}`), el("span", { class: "rail one" }, el("i")),
    el("span", { class: "share" }, number(radius))))),
  ];
}
