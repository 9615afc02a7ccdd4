// Tokens to text by the rules of model.json, which src/elman/data/text/portable.py writes.

/** The text that each token of a stream adds: the inverse of tokenisation. */
export class Writing {
  constructor(reading) {
    const { rules } = reading;
    Object.assign(this, { reading, rules, letter: new RegExp(rules.letter, "u") });
    for (const name of ["tight", "closing", "apostrophes"]) this[name] = new Set(rules[name]);
    for (const name of ["latin", "other_letter"]) this[name] = new RegExp(rules[name], "u");
    for (const name of ["tight_before", "tight_after", "sentence_ends", "currency", "digit_last"]) {
      this[name] = new RegExp(`^(?:${rules[name]})$`, "u");
    }
    this.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    Object.assign(this, { run: [], open: new Set(), close: true, sentence: true, line: true });
    Object.assign(this, { others: false, dash: false });
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
    const glued = (this.close || before) && !this.isSpacedDash(token, before) && same;
    const space = glued || !this.run.length ? "" : " ";
    this.run = glued ? joined.slice(-run) : [text];
    this.close = after;
    this.dash = token === this.rules.dash;
    const latin = this.latin.test(token);
    if (latin || this.other_letter.test(token)) this.others = !latin;
    return space + text;
  }

  /** Whether a space precedes a word since it, or what precedes it, is a dash beside letters that are not Latin. */
  isSpacedDash(word, tight) {
    if (word === this.rules.dash) return this.others && !this.close;
    if (!this.dash || tight || this.latin.test(word)) return false;
    return this.others || this.other_letter.test(word);
  }

  /** Whether a word takes no space before it, and none after it. */
  tightness(word) {
    if (this.tight.has(word)) return [true, true];
    const last = this.run.at(-1) ?? "";
    if (this.currency.test(word)) return [false, !this.digit_last.test(last)];
    const opened = this.rules.quotes[word];
    if (opened === undefined) {
      const before = this.tight_before.test(word) || (word === this.rules.greek_colon && this.others);
      return [before, this.tight_after.test(word)];
    }
    if ([...opened].some((mark) => this.open.delete(mark))) return [true, false];
    const [straight, curly] = this.rules.apostrophes;
    const ends = this.closing.has(word) && last !== ":" && this.tight_before.test(last);
    if (ends || word === curly || (word === straight && last.endsWith("s"))) return [true, false];
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
