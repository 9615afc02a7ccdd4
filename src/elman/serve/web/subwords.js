// Text to subwords, as the library sentencepiece cuts it: the unigram model, and byte-pair encoding. What has no piece
// is spelt in bytes. Kudo & Richardson (2018), SentencePiece; the rules are those of its optimised encoders.

const UNKNOWN_PENALTY = 10;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Bytes by their names among the tokens, [256]; in other tokens `marker` stands for a space. */
export class Bytes {
  constructor(names, marker) {
    Object.assign(this, { names, marker, values: new Map(names.map((name, value) => [name, value])) });
  }

  /** The bytes that a token stands for. */
  of(token) {
    const value = this.values.get(token);
    return value === undefined ? encoder.encode(token.replaceAll(this.marker, " ")) : Uint8Array.of(value);
  }

  spell(text) { return Array.from(encoder.encode(text), (value) => this.names[value]); }

  /** The text of a token; null where its bytes are none by themselves. */
  text(token) {
    try {
      return strict.decode(this.of(token));
    } catch {
      return null;
    }
  }

  join(tokens) { return decoder.decode(Uint8Array.from(tokens.flatMap((one) => [...this.of(one)]))); }
}

export class Subwords {
  constructor({ kind, pieces, scores }, bytes, eos) {
    Object.assign(this, { bytes, eos, marker: bytes.marker });
    this.scores = new Map(pieces.map((piece, at) => [piece, Math.fround(scores[at])]));
    this.cut = kind === "bpe" ? this.merged : this.likeliest;
    this.unknown = Math.fround(scores.reduce((least, one) => Math.min(least, one), Infinity) - UNKNOWN_PENALTY);
    this.beginnings = new Map();
    for (const piece of pieces) {
      let node = this.beginnings;
      for (const unit of piece.split("")) {
        if (!node.has(unit)) node.set(unit, new Map());
        node = node.get(unit);
      }
      node.set("", this.scores.get(piece));
    }
  }

  /** The pieces of a line; a part that they would not restore exactly is spelt in bytes. */
  encode(text) {
    const marker = this.bytes.spell(this.marker);
    return text.split(this.marker).flatMap((part, at) => (at ? [...marker, ...this.exact(part)] : this.exact(part)));
  }

  exact(text) {
    const parts = this.cut([...text.replaceAll(" ", this.marker)]);
    const pieces = parts.flatMap((piece) => (this.scores.has(piece) ? [piece] : this.bytes.spell(piece)));
    const [restored, right] = [pieces.flatMap((piece) => [...this.bytes.of(piece)]), encoder.encode(text)];
    const same = restored.length === right.length && restored.every((byte, at) => byte === right[at]);
    return same && !pieces.includes(this.eos) ? pieces : this.bytes.spell(text);
  }

  /** The pieces whose scores have the greatest sum (Kudo 2018), by Viterbi's algorithm in single precision. */
  likeliest(letters) {
    const score = new Float32Array(letters.length + 1);
    const start = new Int32Array(letters.length + 1).fill(-1);
    const reach = (end, from, sum) => {
      if (start[end] >= 0 && !(sum > score[end])) return;
      score[end] = sum;
      start[end] = from;
    };
    for (let from = 0; from < letters.length; from += 1) {
      let node = this.beginnings;
      let single = false;
      for (let end = from + 1; end <= letters.length; end += 1) {
        for (const unit of letters[end - 1].split("")) node = node?.get(unit);
        if (!node) break;
        const found = node.get("");
        if (found === undefined) continue;
        reach(end, from, Math.fround(found + score[from]));
        single ||= end === from + 1;
      }
      if (!single) reach(from + 1, from, Math.fround(this.unknown + score[from]));
    }
    const pieces = [];
    for (let end = letters.length; end > 0; end = start[end]) pieces.push(letters.slice(start[end], end).join(""));
    return pieces.reverse();
  }

  /** Letters of which the pair that makes up the piece of the greatest score is joined, the first of equal ones. */
  merged(letters) {
    const parts = letters.map((text, at) => ({ text, before: at - 1, after: at + 1 < letters.length ? at + 1 : -1 }));
    const precedes = (one, other) => (one.score === other.score ? one.left < other.left : one.score > other.score);
    const waiting = new Heap(precedes);
    const offer = (left, right) => {
      if (left < 0 || right < 0) return;
      const text = parts[left].text + parts[right].text;
      const score = this.scores.get(text);
      if (score !== undefined) waiting.push({ left, right, score, size: text.length });
    };
    for (let at = 1; at < letters.length; at += 1) offer(at - 1, at);
    for (let top = waiting.pop(); top; top = waiting.pop()) {
      const [left, right] = [parts[top.left], parts[top.right]];
      if (!left.text || !right.text || left.text.length + right.text.length !== top.size) continue;
      left.text += right.text;
      left.after = right.after;
      if (right.after >= 0) parts[right.after].before = top.left;
      right.text = "";
      offer(left.before, top.left);
      offer(top.left, left.after);
    }
    return parts.map((part) => part.text).filter(Boolean);
  }
}

/** Things of which the first by `precedes` can be taken. */
class Heap {
  constructor(precedes) {
    this.precedes = precedes;
    this.items = [];
  }

  push(item) {
    const { items } = this;
    let at = items.push(item) - 1;
    while (at && this.precedes(items[at], items[(at - 1) >> 1])) at = this.swap(at, (at - 1) >> 1);
  }

  pop() {
    const { items } = this;
    if (items.length < 2) return items.pop();
    const top = items[0];
    items[0] = items.pop();
    for (let at = 0; ;) {
      let first = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < items.length && this.precedes(items[child], items[first])) first = child;
      }
      if (first === at) return top;
      at = this.swap(at, first);
    }
  }

  swap(one, other) {
    [this.items[one], this.items[other]] = [this.items[other], this.items[one]];
    return other;
  }
}
