// What the page asks of a model. A backend answers `ask` and `events`; the server is one, another may compute in the
// browser. Questions and answers are as in /openapi.json, whoever answers them.

export class Backend {
  /** The runs and limits: {runs, longest_text, most_steps, most_drawn}. */
  async open() { throw new Error("not implemented"); }

  /** The answer to one question. `signal` gives up. */
  async ask(_operation, _question, _signal) { throw new Error("not implemented"); }

  /** The events of a question, as an async iterator; it ends when `signal` is given. */
  async *events(_operation, _question, _signal) { throw new Error("not implemented"); }

  /** The page is left. */
  leave() {}

  score(question, signal) { return this.ask("score", question, signal); }
  next(question, signal) { return this.ask("next", question, signal); }
  generate(question, signal) { return this.events("generate", question, signal); }
  components(question, signal) { return this.ask("components", question, signal); }
  states(question, signal) { return this.ask("states", question, signal); }
  compare(question, signal) { return this.ask("compare", question, signal); }
  neighbours(question, signal) { return this.ask("neighbours", question, signal); }
  pairs(question, signal) { return this.ask("pairs", question, signal); }
  adapt(question, signal) { return this.ask("adapt", question, signal); }
  translate(question, signal) { return this.ask("translate", question, signal); }
}

/** A question that was not answered: a line for the reader, and after how many seconds to ask again, if that helps. */
export class Refused extends Error {
  constructor(line, again = null) {
    super(line);
    this.again = again;
  }
}
