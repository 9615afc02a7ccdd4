// Text to tokens and back, as src/elman/data/text does it; the rules and lists are those of run.json.

const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WORD = "[\\p{L}\\p{N}_]";
const LETTER = "[\\p{L}\\p{N}_\\u0300-\\u036f]";
const APOSTROPHE = "['\\u2019]";
const EOS = "<eos>";
const BLANK = new RegExp(`^[${SPACE}]*$`, "u");
const PARTS = new RegExp(`[^${SPACE}]+`, "gu");

export class Reading {
  constructor({ reading, words, unk, eos }) {
    this.options = reading;
    this.words = words;
    this.unk = unk;
    this.eos = eos;
    this.ids = new Map(words.map((word, id) => [word, id]));
    this.spelt = reading.tokenisation === "characters" || reading.tokenisation === "bytes";
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

  /** The pieces of a text: {text, id or null, begins, unknown, ends}; the end of an unfinished line is left out. */
  pieces(text) {
    const found = [];
    for (const { line, closed, spaced } of this.passages(text)) {
      const start = found.length;
      if (this.spelt) this.spell(line + (spaced ? " " : ""), found);
      else for (const [word] of line.matchAll(PARTS)) this.cut(word, found);
      if (closed) found.push({ text: EOS, id: this.eos, begins: !this.spelt, unknown: false, ends: true });
      if (this.spelt) this.begin(found, start);
    }
    const last = found.at(-1);
    if (last?.ends && !this.ended(text)) found.pop();
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
      for (const one of lines) yield { line: one.line, closed: one.feed };
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
    return { line: text, closed, spaced: !closed && (feed || text !== line) };
  }

  cut(word, found) {
    const texts = this.options.tokenisation === "raw" ? word.match(this.raw) : [word];
    texts.forEach((text, at) => this.add(text, this.options.lowercase ? text.toLowerCase() : text, at === 0, found));
  }

  add(text, token, begins, found) {
    const id = this.ids.get(token) ?? this.unk;
    found.push({ text, id, begins, unknown: !this.ids.has(token), ends: false });
  }

  spell(text, found) {
    if (this.options.tokenisation === "characters") {
      for (const letter of text) this.add(letter, this.options.lowercase ? letter.toLowerCase() : letter, false, found);
      return;
    }
    for (const byte of new TextEncoder().encode(this.options.lowercase ? text.toLowerCase() : text)) {
      const token = nameOf(byte);
      found.push({ text: token, byte, id: this.ids.get(token) ?? this.unk, begins: false, unknown: !this.ids.has(token), ends: false });
    }
  }

  /** Where words begin among letters: after a boundary, once a word was there; the first letter always does. */
  begin(found, start) {
    let [between, any] = [true, false];
    for (let at = start; at < found.length; at += 1) {
      const piece = found[at];
      const boundary = piece.ends || (piece.byte === undefined ? BLANK.test(piece.text) : piece.byte <= 32);
      piece.begins = at === start || (any && !boundary && between);
      any ||= !boundary;
      between = boundary;
    }
  }

  /** What is shown of pieces: those with an id in one piece, bytes until they make up characters. */
  marks(pieces, scored) {
    const marks = [];
    const decoder = new TextDecoder();
    let [at, held] = [0, null];
    for (const piece of pieces) {
      const one = piece.id === null || piece.id === undefined ? null : scored[at];
      held ??= { text: "", at: one ? at : null, tokens: 0, begins: piece.begins, bits: one ? 0 : null,
        entropy: one ? one.entropy : null, rank: one ? one.rank : null, unknown: piece.unknown, ends: piece.ends };
      if (one) {
        held.tokens += 1;
        held.bits += one.bits;
        at += 1;
      }
      held.text = piece.ends ? "" : piece.byte === undefined ? piece.text : decoder.decode(Uint8Array.of(piece.byte), { stream: true });
      held.ends = piece.ends;
      if (held.text === "" && !piece.ends) continue;
      marks.push(held);
      held = null;
    }
    if (held) marks.push({ ...held, text: "\ufffd" });
    return marks;
  }
}

/** The name of a byte among the tokens. */
function nameOf(byte) {
  return byte < 128 ? String.fromCharCode(byte) : `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}

/** The text that each token of a stream adds: the inverse of tokenisation. */
export class Writing {
  constructor(reading) {
    this.reading = reading;
    this.before = new Set(reading.options.tight_before);
    this.after = new Set(reading.options.tight_after);
    this.both = new Set(reading.options.tight);
    this.decoder = new TextDecoder();
    this.reset();
  }

  reset() {
    Object.assign(this, { run: [], open: new Set(), tight: true, sentence: true, line: true });
  }

  add(token) {
    const { tokenisation, eos, lowercase } = this.reading.options;
    if (token === EOS) {
      const line = eos === "paragraph" ? "\n\n" : "\n";
      if (this.line) this.open.clear();
      Object.assign(this, { run: [], tight: true, sentence: true, line: true });
      return line;
    }
    this.line = false;
    if (tokenisation === "characters") return token;
    if (tokenisation === "bytes") {
      const byte = token.length > 1 ? Number.parseInt(token.slice(3, 5), 16) : token.charCodeAt(0);
      return this.decoder.decode(Uint8Array.of(byte), { stream: true });
    }
    if (tokenisation === "words") {
      const space = this.tight ? "" : " ";
      this.tight = false;
      return space + token;
    }
    const [before, after] = this.tightness(token);
    const text = lowercase ? this.capitalised(token) : token;
    const joined = [...this.run, text];
    const parts = joined.join("").match(this.reading.raw) ?? [];
    const same = parts.length === joined.length && parts.every((part, at) => part === joined[at]);
    const glued = (this.tight || before) && same;
    const space = glued || !this.run.length ? "" : " ";
    this.run = glued ? joined.slice(-8) : [text];
    this.tight = after;
    return space + text;
  }

  tightness(word) {
    if (this.both.has(word)) return [true, true];
    if (!['"', "'", "\u2019"].includes(word)) return [this.before.has(word), this.after.has(word)];
    if (this.open.delete(word)) return [true, false];
    if (word === "\u2019" || (word === "'" && this.run.at(-1)?.endsWith("s"))) return [true, false];
    this.open.add(word);
    return [false, true];
  }

  capitalised(word) {
    const starts = this.sentence;
    const letters = /[\p{L}\p{N}]/u.test(word);
    this.sentence = [".", "!", "?"].includes(word) || (starts && !letters);
    if (!letters || !(starts || word === "i" || word.startsWith("i'") || word.startsWith("i\u2019"))) return word;
    const mark = ["'", "\u2019"].includes(word[0]) ? word[0] : "";
    const rest = word.slice(mark.length);
    const capital = mark + rest[0].toUpperCase() + rest.slice(1);
    return capital.toLowerCase() === word ? capital : word;
  }
}
