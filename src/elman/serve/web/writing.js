// Tokens to text by the rules of model.json, which src/elman/data/text/portable.py writes.

/** The text that each token of a stream adds: the inverse of tokenisation. */
export class Writing {
  constructor(reading) {
    const { rules } = reading;
    Object.assign(this, { reading, rules, letter: new RegExp(rules.letter, "u") });
    for (const name of ["tight", "marks", "apostrophes"]) this[name] = new Set(rules[name]);
    for (const name of ["tight_before", "tight_after", "sentence_ends"]) {
      this[name] = new RegExp(`^(?:${rules[name]})$`, "u");
    }
    this.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    Object.assign(this, { run: [], open: new Set(), close: true, sentence: true, line: true });
  }

  /** The text of bytes that never became a character. */
  end() { return this.reading.inBytes ? this.decoder.decode() : ""; }

  add(token) {
    const { tokenisation, lowercase, eos, run } = this.rules;
    if (token === eos) {
      if (this.line) this.open.clear();
      Object.assign(this, { run: [], close: true, sentence: true, line: true });
      return this.end() + this.rules.break;
    }
    this.line = false;
    if (this.reading.inBytes) return this.decoder.decode(this.reading.bytes.of(token), { stream: true });
    if (tokenisation === "characters") return token;
    if (tokenisation === "words") {
      const space = this.close ? "" : " ";
      this.close = false;
      return space + token;
    }
    const [before, after] = this.tightness(token);
    const text = lowercase ? this.capitalised(token) : token;
    const joined = [...this.run, text];
    const elided = this.rules.elisions && text.length > 1 && this.apostrophes.has(text.at(-1));
    const whole = elided ? [...joined, "a"] : joined; // what follows decides
    const parts = whole.join("").match(this.reading.tokens) ?? [];
    const same = parts.length === whole.length && parts.every((part, at) => part === whole[at]);
    const glued = (this.close || before) && same;
    const space = glued || !this.run.length ? "" : " ";
    this.run = glued ? joined.slice(-run) : [text];
    this.close = after;
    return space + text;
  }

  /** Whether a word takes no space before it, and none after it. */
  tightness(word) {
    if (this.tight.has(word)) return [true, true];
    if (!this.marks.has(word)) return [this.tight_before.test(word), this.tight_after.test(word)];
    if (this.open.delete(word)) return [true, false];
    const [straight, curly] = this.rules.apostrophes;
    if (word === curly || (word === straight && this.run.at(-1)?.endsWith("s"))) return [true, false];
    this.open.add(word);
    return [false, true];
  }

  capitalised(word) {
    const starts = this.sentence;
    const letters = this.letter.test(word);
    this.sentence = this.sentence_ends.test(word) || (starts && !letters);
    const first = word === "i" || this.rules.apostrophes.some((mark) => word.startsWith(`i${mark}`));
    if (!letters || !(starts || first)) return word;
    const mark = this.apostrophes.has(word[0]) ? word[0] : "";
    const rest = word.slice(mark.length);
    const capital = mark + rest[0].toUpperCase() + rest.slice(1);
    return capital.toLowerCase() === word ? capital : word;
  }
}
