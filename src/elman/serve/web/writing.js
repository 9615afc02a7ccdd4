// Tokens to text, as src/elman/data/text does it; the rules and lists are those of model.json.

import { EOS } from "./reading.js";
import { pieceBytes } from "./subwords.js";

/** The text that each token of a stream adds: the inverse of tokenisation. */
export class Writing {
  constructor(reading) {
    this.reading = reading;
    this.before = new Set(reading.options.tight_before);
    this.after = new Set(reading.options.tight_after);
    this.both = new Set(reading.options.tight);
    this.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    Object.assign(this, { run: [], open: new Set(), tight: true, sentence: true, line: true });
  }

  /** The text of bytes that never became a character. */
  end() { return this.reading.inBytes ? this.decoder.decode() : ""; }

  add(token) {
    const { tokenisation, eos, lowercase } = this.reading.options;
    if (token === EOS) {
      const line = eos === "paragraph" ? "\n\n" : "\n";
      if (this.line) this.open.clear();
      Object.assign(this, { run: [], tight: true, sentence: true, line: true });
      return this.end() + line;
    }
    this.line = false;
    if (tokenisation === "characters") return token;
    if (this.reading.inBytes) return this.decoder.decode(pieceBytes(token), { stream: true });
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
