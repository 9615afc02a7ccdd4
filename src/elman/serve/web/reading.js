// Text to tokens and words, as src/elman/data/text does it; the rules and lists are those of model.json.

import { Subwords, pieceBytes } from "./subwords.js";

const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WORD = "[\\p{L}\\p{N}_]";
const LETTER = "[\\p{L}\\p{N}_\\u0300-\\u036f]";
const APOSTROPHE = "['\\u2019]";
export const EOS = "<eos>";
const BLANK = new RegExp(`^[${SPACE}]*$`, "u");
const PARTS = new RegExp(`[^${SPACE}]+`, "gu");
const EDGES = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");
const FIRST = new RegExp(`^[${SPACE}]`, "u");
const LAST = new RegExp(`[${SPACE}]$`, "u");
const whole = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Reading {
  constructor({ reading, words, unk, eos = null, subwords = null }) {
    this.options = reading;
    this.words = words;
    this.unk = unk;
    this.eos = eos;
    this.ids = new Map(words.map((word, id) => [word, id]));
    this.inBytes = reading.tokenisation === "bytes" || reading.tokenisation === "subwords";
    this.spelt = this.inBytes || reading.tokenisation === "characters";
    this.subwords = subwords && new Subwords(subwords);
    this.spaces = subwords ? words.flatMap((word, id) => (this.isSpaced(word) ? [id] : [])) : [];
    const anyCase = (list) => list.split("|").map((word) => [...word].map((letter) =>
      `[${letter}${letter.toUpperCase()}]`).join("")).join("|");
    this.raw = new RegExp([
      "<unk>",
      `(?<!${WORD})${APOSTROPHE}(?:${anyCase(reading.leading)})(?!${LETTER})`,
      `(?<!${WORD})(?:${anyCase(reading.trailing)})${APOSTROPHE}(?!${LETTER})`,
      `\\p{Nd}+(?:[.,:/]\\p{Nd}+)+(?!${LETTER})`,
      `${LETTER}+(?:(?:[-\\u2011]|${APOSTROPHE})${LETTER}+)*`,
      "-{2,}|\\.{2,}",
      `[^${SPACE}]`,
    ].join("|"), "gu");
  }

  /** The pieces of a text: {text, token, id or null, begins, unknown, ends}, without the end of an unfinished line. */
  pieces(text) {
    const found = [];
    let start = 0;
    for (const { line, closed, spaced, last } of this.passages(text)) {
      this.read(line + (this.spelt && spaced ? " " : ""), found);
      if (closed) found.push({ text: EOS, token: EOS, id: this.eos, begins: !this.spelt, unknown: false, ends: true });
      if (!last) continue;
      if (this.spelt) this.begin(found, start);
      start = found.length;
    }
    if (this.spelt) this.begin(found, start);
    const end = found.at(-1);
    if (end?.ends && !this.ended(text)) found.pop();
    return found;
  }

  /** The pieces of one line are added to those that were found. */
  read(line, found) {
    if (this.spelt) this.spell(line, found);
    else for (const [word] of line.matchAll(PARTS)) this.cut(word, found);
    return found;
  }

  ended(text) {
    if (this.options.eos === "paragraph") return /\n[^\S\n]*\n\s*$/u.test(text);
    return this.options.eos === "exact" || text.endsWith("\n");
  }

  clean(line) {
    let cleaned = line;
    if (this.options.ruby === "remove") {
      for (let before = null; before !== cleaned;) {
        before = cleaned;
        cleaned = cleaned.replace(/［＃[^［］]*］/gu, "");
      }
      cleaned = cleaned.replace(/《[^《》]*》/gu, "").replaceAll("｜", "");
    }
    return this.options.normalisation === "none" ? cleaned : cleaned.normalize(this.options.normalisation);
  }

  *passages(text) {
    const lines = text.split("\n").map((line, at, all) => ({ line: this.clean(line), feed: at < all.length - 1 }));
    if (!lines.at(-1).feed && lines.at(-1).line === "") lines.pop();
    const { eos, tokenisation } = this.options;
    const blank = ({ line }) => BLANK.test(line);
    if (eos === "exact") {
      for (const one of lines) yield { line: one.line, closed: one.feed, last: one.feed };
    } else if (eos === "paragraph") {
      let held = null;
      for (const one of lines) {
        if (held !== null) yield this.passage(held, blank(one));
        held = blank(one) ? null : one;
      }
      if (held !== null) yield this.passage(held, true);
    } else {
      const every = eos === "line" && tokenisation !== "raw";
      let keep = every;
      for (const one of lines) {
        if (!blank(one) || keep) yield this.passage(one, eos === "line");
        keep = every || (eos === "line" && !blank(one));
      }
    }
  }

  passage({ line, feed }, closed) {
    const text = line.endsWith("\r") ? line.slice(0, -1) : line;
    const last = closed || (feed && this.options.eos === "none");
    return { line: text, closed, spaced: !closed && (feed || text !== line), last };
  }

  cut(word, found) {
    const texts = this.options.tokenisation === "raw" ? word.match(this.raw) : [word];
    texts.forEach((text, at) => this.add(text, this.options.lowercase ? text.toLowerCase() : text, at === 0, found));
  }

  add(text, token, begins, found) {
    const id = this.ids.get(token) ?? this.unk;
    found.push({ text, token, id, begins, unknown: !this.ids.has(token), ends: false });
  }

  spell(text, found) {
    const { tokenisation, lowercase } = this.options;
    if (tokenisation === "characters") {
      for (const letter of text) this.add(letter, lowercase ? letter.toLowerCase() : letter, false, found);
      return;
    }
    const folded = lowercase ? text.toLowerCase() : text;
    const bytes = () => Array.from(new TextEncoder().encode(folded), nameOf);
    const tokens = tokenisation === "subwords" ? this.subwords.encode(folded) : bytes();
    for (const token of tokens) this.add(token, token, false, found);
  }

  /** Where words begin among the pieces of a sentence: the first, and after a boundary, once a word was there. */
  begin(found, start) {
    let [between, any] = [true, false];
    for (let at = start; at < found.length; at += 1) {
      const piece = found[at];
      const text = this.textOf(piece.text);
      const boundary = piece.ends || BLANK.test(text);
      piece.opens = at === start;
      piece.begins = piece.opens || (any && !boundary && (between || FIRST.test(text)));
      any ||= !boundary;
      between = boundary || LAST.test(text);
    }
  }

  /** What a piece spells; "?" where its bytes are no text by themselves. */
  textOf(token) { return this.inBytes && token !== EOS ? (decoded(token) ?? "?") : token; }

  /** Whether a piece begins with white space. */
  isSpaced(token) { return token !== EOS && FIRST.test(this.textOf(token)); }

  /** What is shown of pieces: those with an id in one piece, bytes until they make up characters. */
  marks(pieces, scored) {
    const marks = [];
    let decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let [at, held] = [0, null];
    for (const piece of pieces) {
      const one = isRead(piece) ? scored[at] : null;
      held ??= { text: "", at: one ? at : null, tokens: 0, begins: false, bits: one ? 0 : null,
        entropy: one ? one.entropy : null, rank: one ? one.rank : null, unknown: false, ends: false };
      if (one) {
        held.tokens += 1;
        held.bits += one.bits;
        at += 1;
      }
      held.begins ||= piece.begins || (piece.ends && this.inBytes);
      if (!this.inBytes || piece.ends) held.text = piece.ends ? "" : piece.text;
      else held.text = decoder.decode(pieceBytes(piece.text), { stream: true });
      if (held.text === "" && !piece.ends) continue;
      if (piece.ends) decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      marks.push({ ...held, unknown: piece.unknown, ends: piece.ends });
      held = null;
    }
    if (held) marks.push({ ...held, text: "\ufffd" });
    return marks;
  }

  /** The words of pieces, without ends of lines: [text, bits or null]. */
  wordsOf(pieces, scored) {
    const found = [];
    const bits = this.wordEnds(pieces, scored);
    let at = 0;
    for (const piece of pieces) {
      if (piece.begins || !found.length) found.push({ pieces: [], bits: null });
      const word = found.at(-1);
      word.pieces.push(piece);
      if (!isRead(piece)) continue;
      word.bits = (word.bits ?? 0) + bits[at];
      at += 1;
    }
    return found.map(({ pieces: own, bits: sum }) => [this.spelling(own), sum]).filter(([text]) => text !== EOS);
  }

  /** The bits of pieces, of subwords so that sums over words have their ends, as src/elman/evaluation/word_ends.py. */
  wordEnds(pieces, scored) {
    const bits = scored.map((one) => one.bits);
    if (!this.subwords) return bits;
    const read = [];
    let [any, begins] = [false, false];
    for (const piece of pieces) {
      any &&= !piece.opens;
      begins ||= piece.begins;
      if (!isRead(piece)) continue;
      read.push({ token: piece.token, follows: begins && any });
      [any, begins] = [true, false];
    }
    read.forEach(({ follows }, begin) => {
      if (!follows) return;
      let end = begin;
      while (end > 1 && BLANK.test(this.textOf(read[end - 1].token))) end -= 1;
      if (!this.isSpaced(read[end].token) || read[end - 1].token === EOS) return;
      const between = scored.slice(end, begin).reduce((rest, one) => rest - one.bits, scored[end].space);
      if (!Number.isFinite(between)) return;
      bits[begin - 1] += between;
      bits[begin] -= between;
    });
    return bits;
  }

  /** The word that pieces spell; a boundary alone is itself. */
  spelling(pieces) {
    if (!this.spelt) return pieces.map((piece) => piece.text).join("");
    const inner = pieces.filter((piece) => !piece.ends).map((piece) => piece.text);
    const bytes = () => Uint8Array.from(inner.flatMap((one) => [...pieceBytes(one)]));
    const text = this.inBytes ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes()) : inner.join("");
    return text.replace(EDGES, "") || (inner.length < pieces.length ? EOS : " ");
  }

  /** A token as the page shows it by itself. */
  shown(token) {
    if (!this.inBytes || token === EOS) return token;
    return decoded(token) ?? [...pieceBytes(token)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  }
}

/** Whether a model reads a piece. */
function isRead(piece) { return piece.id !== null && piece.id !== undefined; }

/** The text of a piece; null where its bytes are none by themselves. */
function decoded(piece) {
  try {
    return whole.decode(pieceBytes(piece));
  } catch {
    return null;
  }
}

/** The name of a byte among the tokens. */
function nameOf(byte) {
  return byte < 128 ? String.fromCharCode(byte) : `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}
