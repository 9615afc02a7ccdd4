// Text to tokens and words by the rules of model.json, which src/elman/data/text/portable.py writes.

import { Bytes, Subwords } from "./subwords.js";

export class Reading {
  constructor({ reading, words, unk, eos = null, subwords = null }) {
    const { space, bytes, marker } = reading;
    this.rules = reading;
    this.words = words;
    this.unk = unk;
    this.eos = eos;
    this.ids = new Map(words.map((word, id) => [word, id]));
    this.inBytes = bytes !== null;
    this.bytes = bytes && new Bytes(bytes, marker);
    this.subwords = subwords && new Subwords(subwords, this.bytes, reading.eos);
    const global = (pattern) => new RegExp(pattern, "gu");
    this.removed = reading.removed.map(([pattern, again]) => [global(pattern), again]);
    [this.parts, this.tokens] = [global(reading.part), global(reading.token)];
    this.characters = global(reading.characters);
    [this.blank, this.edges] = [new RegExp(`^[${space}]*$`, "u"), global(`^[${space}]+|[${space}]+$`)];
    [this.first, this.last] = [new RegExp(`^[${space}]`, "u"), new RegExp(`[${space}]$`, "u")];
    this.ended = new RegExp(reading.ended, "u");
    this.spaces = subwords ? words.flatMap((word, id) => (this.isSpaced(word) ? [id] : [])) : [];
    this.blanks = this.spaces.filter((id) => this.textOf(words[id]).startsWith(" "));
  }

  /** The pieces of a text: {text, token, id or null, begins, unknown, ends}, without the end of an unfinished line. */
  pieces(text) {
    const { spelt, eos } = this.rules;
    const found = [];
    let start = 0;
    for (const { line, closed, last } of this.passages(text)) {
      this.read(line, found);
      if (closed) found.push({ text: eos, token: eos, id: this.eos, begins: !spelt, unknown: false, ends: true });
      if (!last) continue;
      if (spelt) this.begin(found, start);
      start = found.length;
    }
    if (spelt) this.begin(found, start);
    if (found.at(-1)?.ends && !this.ended.test(text)) found.pop();
    return found;
  }

  /** The pieces of one line are added to those that were found. */
  read(line, found) {
    if (this.rules.spelt) this.spell(line, found);
    else for (const [word] of line.matchAll(this.parts)) this.cut(word, found);
    return found;
  }

  clean(line) {
    let cleaned = line;
    for (const [pattern, again] of this.removed) {
      let before;
      do {
        before = cleaned;
        cleaned = before.replace(pattern, "");
      } while (again && cleaned !== before);
    }
    return this.rules.normalisation ? cleaned.normalize(this.rules.normalisation) : cleaned;
  }

  /** The lines that are read, {line, closed: whether `<eos>` ends it, last: whether a sentence ends with it}. */
  *passages(text) {
    const { blank, closed: rule, whole, returns, spelt } = this.rules;
    const lines = text.split("\n").map((line, at, all) => ({ line: this.clean(line), feed: at < all.length - 1 }));
    if (!lines.at(-1).feed && lines.at(-1).line === "") lines.pop();
    const empty = lines.map(({ line }) => this.blank.test(line));
    for (const [at, { line, feed }] of lines.entries()) {
      const kept = !empty[at] || blank === "kept" || (blank === "once" && at > 0 && !empty[at - 1]);
      if (!kept) continue;
      const closed = rule === "line" || (rule === "feed" && feed) || (rule === "paragraph" && (empty[at + 1] ?? true));
      const shown = returns || !line.endsWith("\r") ? line : line.slice(0, -1);
      const spaced = spelt && !returns && !closed && (feed || shown !== line);
      yield { line: shown + (spaced ? " " : ""), closed, last: closed || (feed && whole) };
    }
  }

  cut(word, found) {
    word.match(this.tokens).forEach((text, at) =>
      this.add(text, this.rules.lowercase ? text.toLowerCase() : text, at === 0, found));
  }

  add(text, token, begins, found) {
    const id = this.ids.get(token) ?? this.unk;
    found.push({ text, token, id, begins, unknown: !this.ids.has(token), ends: false });
  }

  spell(text, found) {
    const { lowercase } = this.rules;
    if (this.inBytes) {
      const folded = lowercase ? text.toLowerCase() : text;
      const tokens = this.subwords ? this.subwords.encode(folded) : this.bytes.spell(folded);
      for (const token of tokens) this.add(token, token, false, found);
    } else {
      for (const [letter] of text.matchAll(this.characters)) this.add(letter, lowercase ? letter.toLowerCase() : letter, false, found);
    }
  }

  /** Where words begin among the pieces of a sentence: the first, and after a boundary, once a word was there. */
  begin(found, start) {
    let [between, any] = [true, false];
    const texts = this.textsOf(found.slice(start).map((piece) => piece.text));
    for (let at = start; at < found.length; at += 1) {
      const piece = found[at];
      const text = texts[at - start];
      const boundary = piece.ends || this.blank.test(text);
      piece.opens = at === start;
      piece.begins = piece.opens || (any && !boundary && (between || this.first.test(text)));
      any ||= !boundary;
      between = boundary || this.last.test(text);
    }
  }

  /** What a piece spells; "?" where its bytes are no text by themselves. */
  textOf(token) { return this.inBytes && token !== this.rules.eos ? (this.bytes.text(token) ?? "?") : token; }

  /** The text of each token; each byte of white space beyond ASCII is a space. */
  textsOf(tokens) {
    const texts = tokens.map((token) => this.textOf(token));
    const value = (token) => (this.inBytes ? this.bytes.values.get(token) ?? 0 : 0);
    tokens.forEach((token, at) => {
      for (const size of value(token) > 127 ? [2, 3] : []) {
        const run = tokens.slice(at, at + size);
        const whole = run.every((one) => value(one) > 127);
        if (whole && this.blank.test(this.bytes.join(run))) texts.fill(" ", at, at + size);
      }
    });
    return texts;
  }

  /** Whether a piece begins with white space. */
  isSpaced(token) { return token !== this.rules.eos && this.first.test(this.textOf(token)); }

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
      else held.text = decoder.decode(this.bytes.of(piece.text), { stream: true });
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
      if (piece.begins || !found.length) found.push({ pieces: [], bits: null, unknown: false });
      const word = found.at(-1);
      word.pieces.push(piece);
      word.unknown ||= Boolean(piece.unknown);
      if (!isRead(piece)) continue;
      word.bits = (word.bits ?? 0) + bits[at];
      at += 1;
    }
    return found.map(({ pieces: own, bits: sum, unknown }) => [this.spelling(own), sum, unknown])
      .filter(([text]) => text !== this.rules.eos);
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
      while (end > 1 && this.blank.test(this.textOf(read[end - 1].token))) end -= 1;
      if (!this.isSpaced(read[end].token) || read[end - 1].token === this.rules.eos) return;
      const between = scored.slice(end, begin).reduce((rest, one) => rest - one.bits, scored[end].space);
      if (!Number.isFinite(between)) return;
      bits[begin - 1] += between;
      bits[begin] -= between;
    });
    return bits;
  }

  /** The word that pieces spell; a boundary alone is itself. */
  spelling(pieces) {
    if (!this.rules.spelt) return pieces.map((piece) => piece.text).join("");
    const inner = pieces.filter((piece) => !piece.ends).map((piece) => piece.text);
    const text = this.inBytes ? this.bytes.join(inner) : inner.join("");
    return text.replace(this.edges, "") || (inner.length < pieces.length ? this.rules.eos : " ");
  }

  /** A token as the page shows it by itself. */
  shown(token) {
    if (!this.inBytes || token === this.rules.eos) return token;
    return this.bytes.text(token)
      ?? [...this.bytes.of(token)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  }
}

/** Whether a model reads a piece. */
function isRead(piece) { return piece.id !== null && piece.id !== undefined; }
