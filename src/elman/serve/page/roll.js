// A grid of steps and pitches on a canvas, edited by pointer and by keys; its state is said to screen readers.

import { el, heat, number } from "./tools.js";
import { held } from "./player.js";

const NAMES = ["C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B"];
const BLACK = new Set([1, 3, 6, 8, 10]);
const STEP = 15;
const ROW = 11;
const LEFT = 38;
const BELOW = 34;

export const noteName = (pitch) => `${NAMES[pitch % 12]}${Math.floor(pitch / 12) - 1}`;

export class Roll {
  constructor({ lowest, size, step_seconds: seconds }) {
    [this.low, this.high] = [lowest, lowest + size - 1];
    this.seconds = seconds;
    this.quarter = Math.round(0.5 / seconds);  // steps of a quarter note
    this.steps = [];
    this.drawn = Infinity;
    this.past = [];
    this.bits = [];
    this.next = null;
    this.at = [0, Math.min(this.high, Math.max(this.low, 60))];
    this.step = null;
    this.speed = 1;
    this.changed = () => {};
    this.told = () => {};
    this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "piano roll: arrow keys move by a step or a"
      + " pitch, the space bar sets or clears a note" });
    this.element = el("div", { class: "scroll roll" }, this.canvas);
    this.element.addEventListener("scroll", () => this.paint());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.drag(event));
    this.canvas.addEventListener("focus", () => this.paint());
    this.canvas.addEventListener("blur", () => this.paint());
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => this.release());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
    this.fit();
    requestAnimationFrame(() => this.reveal());
  }

  /** Scrolls to the notes, or to the middle of the keys, so that they are in sight. */
  reveal() {
    const sounding = this.steps.flat();
    const middle = sounding.length ? (Math.min(...sounding) + Math.max(...sounding)) / 2 : this.at[1] + 6;
    this.element.scrollTop = (this.high - middle) * ROW - this.element.clientHeight / 2;
    this.paint();
  }

  /** Puts a piece in the place of what is there. */
  open(steps) {
    this.keep();
    [this.steps, this.drawn] = [steps, Infinity];
    this.element.scrollLeft = 0;
    this.edited();
    this.reveal();
  }

  trimmed() {
    let end = this.steps.length;
    while (end && !this.steps[end - 1]?.length) end -= 1;
    return Array.from({ length: end }, (_, step) => this.steps[step] ?? []);
  }

  append(notes) {
    if (this.drawn === Infinity) {
      this.keep();
      this.steps = this.trimmed();
      this.drawn = this.steps.length;
    }
    this.steps.push(notes);
    this.fit();
    this.paint();
    this.element.scrollLeft = Math.max(0, LEFT + this.steps.length * STEP - this.element.clientWidth + 8 * STEP);
  }

  surprised(bits, next) {
    [this.bits, this.next] = [bits, next];
    this.drawn = this.drawn === Infinity ? Infinity : this.drawn;
    this.paint();
  }

  playing(step) {
    this.step = step;
    if (step !== null) {
      const x = LEFT + step * STEP;
      const { scrollLeft, clientWidth } = this.element;
      if (x < scrollLeft || x > scrollLeft + clientWidth - 4 * STEP) this.element.scrollLeft = x - LEFT;
    }
    this.paint();
  }

  clear() {
    this.keep();
    [this.steps, this.drawn] = [[], Infinity];
    this.edited();
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    [this.steps, this.drawn] = before;
    this.edited();
  }

  keep() {
    this.past.push([structuredClone(this.steps), this.drawn]);
    if (this.past.length > 100) this.past.shift();
  }

  set(step, pitch, on) {
    while (this.steps.length <= step) this.steps.push([]);
    const without = this.steps[step].filter((one) => one !== pitch);
    this.steps[step] = on ? [...without, pitch].sort((a, b) => a - b) : without;
    if (step >= this.drawn) this.drawn = Infinity;
  }

  has(step, pitch) { return this.steps[step]?.includes(pitch) ?? false; }

  edited() {
    this.bits = [];
    this.next = null;
    this.fit();
    this.paint();
    this.changed();
  }

  key(event) {
    const [step, pitch] = this.at;
    const moves = {
      ArrowRight: [step + 1, pitch], ArrowLeft: [Math.max(0, step - 1), pitch],
      ArrowUp: [step, Math.min(this.high, pitch + 1)], ArrowDown: [step, Math.max(this.low, pitch - 1)],
      PageUp: [step, Math.min(this.high, pitch + 12)], PageDown: [step, Math.max(this.low, pitch - 12)],
      Home: [0, pitch], End: [this.trimmed().length, pitch],
    };
    if (event.key in moves && !event.ctrlKey) {
      event.preventDefault();
      this.at = moves[event.key];
      this.fit();
      const top = (this.high - this.at[1]) * ROW;
      const { scrollTop, clientHeight } = this.element;
      if (top < scrollTop || top > scrollTop + clientHeight - BELOW - ROW) this.element.scrollTop = top - clientHeight / 2;
    } else if (event.key === " " || event.key === "Enter") {
      event.preventDefault();
      this.keep();
      this.set(step, pitch, !this.has(step, pitch));
      this.edited();
    } else {
      return;
    }
    const [now, name] = [this.at[0], noteName(this.at[1])];
    this.told(`step ${now + 1}, ${name}, ${this.has(...this.at) ? "sounds" : "silent"}`);
    this.paint();
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const step = Math.floor((event.clientX - box.left - LEFT) / STEP);
    const pitch = this.high - Math.floor((event.clientY - box.top) / ROW);
    if (event.clientY - box.top > this.bottom()) return null;
    return step >= 0 && pitch >= this.low && pitch <= this.high ? [step, pitch] : null;
  }

  press(event) {
    const at = this.place(event);
    if (!at || event.button) return;
    this.keep();
    this.at = at;
    this.writes = !this.has(...at);
    this.pitch = at[1];
    this.set(...at, this.writes);
    try {
      this.canvas.setPointerCapture(event.pointerId);
    } catch {
      // the pointer has been lifted
    }
    this.paint();
  }

  drag(event) {
    const at = this.writes === undefined ? null : this.place(event);
    if (!at) return;
    this.set(at[0], this.pitch, this.writes);
    this.paint();
  }

  release() {
    if (this.writes === undefined) return;
    this.writes = undefined;
    const [step, pitch] = this.at;
    this.told(`step ${step + 1}, ${noteName(pitch)}, ${this.has(step, pitch) ? "sounds" : "silent"}`);
    this.edited();
  }

  /** Where the keys in sight end, above the line of bits and times, which stays at the lower edge. */
  bottom() {
    const { scrollTop, clientHeight } = this.element;
    return Math.min(this.height, clientHeight ? scrollTop + clientHeight : Infinity) - BELOW;
  }

  /** The number of steps that are shown. */
  fit() {
    this.length = Math.max(64, 16 * Math.ceil((Math.max(this.steps.length, this.at[0]) + 8) / 16));
    const [width, height] = [LEFT + this.length * STEP + 1, (this.high - this.low + 1) * ROW + BELOW];
    if (this.width === width && this.height === height) return;
    [this.width, this.height] = [width, height];
    const ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    this.canvas.style.setProperty("width", `${width}px`);
    this.canvas.style.setProperty("height", `${height}px`);
  }

  paint() {
    const pen = this.canvas.getContext("2d");
    const style = getComputedStyle(this.canvas);
    const colour = (name) => style.getPropertyValue(name).trim();
    const ratio = devicePixelRatio || 1;
    const y = (pitch) => (this.high - pitch) * ROW;
    const x = (step) => LEFT + step * STEP;
    const bottom = this.bottom();
    const bar = 4 * this.quarter;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = `11px ${colour("--text") || "sans-serif"}`;
    pen.textBaseline = "middle";
    for (let pitch = this.low; pitch <= this.high; pitch += 1) {
      pen.fillStyle = colour("--grid");
      pen.globalAlpha = BLACK.has(pitch % 12) ? 0.5 : 0.14;
      pen.fillRect(LEFT, y(pitch), this.width - LEFT, ROW - 1);
      pen.globalAlpha = 1;
    }
    for (let step = 0; step <= this.length; step += this.quarter) {
      pen.fillStyle = colour("--grid");
      pen.fillRect(x(step), 0, step % bar ? 0.5 : 1.5, this.height);
    }
    const end = this.trimmed().length;
    this.next?.pitches.forEach((pitch, at) => {
      if (pitch < this.low || pitch > this.high || this.steps.length > end + 1) return;
      pen.fillStyle = colour("--series-4");
      pen.globalAlpha = Math.min(0.85, 0.08 + this.next.shares[at]);
      pen.fillRect(x(end) + 1, y(pitch), STEP - 2, ROW - 1);
      pen.globalAlpha = 1;
    });
    for (const [from, to, pitch] of held(this.steps.map((notes) => notes ?? []))) {
      const cut = Math.max(from, Math.min(to, this.drawn));
      for (const [a, b, name] of [[from, cut, "--series-0"], [cut, to, "--series-2"]]) {
        if (a >= b) continue;
        pen.globalAlpha = 1;
        pen.fillStyle = colour(name);
        pen.beginPath();
        pen.roundRect(x(a) + 0.5, y(pitch) + 0.5, (b - a) * STEP - 1.5, ROW - 2, 2.5);
        pen.fill();
      }
    }
    pen.fillStyle = colour("--raised") || colour("--paper");
    pen.fillRect(0, bottom, this.width, BELOW);
    pen.fillStyle = colour("--muted");
    pen.textAlign = "left";
    for (let step = 0; step <= this.length; step += bar) {
      pen.fillText(`${step / bar + 1} · ${number(step * this.seconds / this.speed, 1)} s`, x(step) + 2, bottom + BELOW - 8);
    }
    this.bits.forEach((bits, step) => {
      pen.fillStyle = `rgb(${colour("--hot")})`;
      pen.globalAlpha = 0.12 + 0.75 * heat(bits / 2);
      pen.fillRect(x(step) + 0.5, bottom + 4, STEP - 1.5, 9);
    });
    pen.globalAlpha = 1;
    this.paintNames(pen, colour, y, bottom);
    if (this.step !== null) {
      pen.fillStyle = colour("--series-1");
      pen.fillRect(x(this.step), 0, 2, bottom);
    }
    if (document.activeElement === this.canvas) {
      pen.strokeStyle = colour("--accent");
      pen.lineWidth = 2;
      pen.strokeRect(x(this.at[0]) + 0.5, y(this.at[1]), STEP - 1, ROW);
    }
    const total = this.bits.reduce((sum, bits) => sum + bits, 0);
    this.canvas.dataset.said = `${end} steps, ${number(total, 1)} bits`;
  }

  /** The names of pitches, at the edge that is in sight. */
  paintNames(pen, colour, y, bottom) {
    const left = this.element.scrollLeft;
    if (left) {
      pen.fillStyle = colour("--paper");
      pen.globalAlpha = 0.82;
      pen.fillRect(left, 0, LEFT - 3, bottom);
      pen.globalAlpha = 1;
    }
    pen.fillStyle = colour("--muted");
    pen.textAlign = "right";
    for (let pitch = this.low; pitch <= this.high; pitch += 1) {
      if (pitch % 12 === 0 && y(pitch) < bottom - ROW / 2) pen.fillText(noteName(pitch), left + LEFT - 7, y(pitch) + ROW / 2);
    }
    if (this.bits.length) pen.fillText("bits", left + LEFT - 7, bottom + 9);
    pen.fillText("bar", left + LEFT - 7, bottom + BELOW - 8);
  }
}
