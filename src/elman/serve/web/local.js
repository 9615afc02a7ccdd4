// The backend without a server: the models are computed here. A model is opened when it is asked for the first time.

import { Backend, Refused } from "./backend.js";
import { file, json } from "./files.js";
import { MusicModel } from "./music-model.js";
import { Network } from "./network.js";
import { PairModel } from "./pair-model.js";
import { TextModel, compared } from "./text-model.js";

const MODELS = { text: TextModel, music: MusicModel, pairs: PairModel };

export class Local extends Backend {
  async open() {
    const { runs, defaults, ...limits } = await json("runs.json");
    this.defaults = defaults;
    this.runs = new Map(runs.map((run) => [run.facts.name, { ...run, model: null }]));
    return { runs: runs.map((run) => run.facts), ...limits };
  }

  async ask(operation, asked) {
    const question = { ...this.defaults[operation], ...asked };
    const model = await this.model(question.run);
    if (operation === "compare") return compared(model, await this.model(question.other), question.text);
    if (!model.answers[operation]) throw new Refused(`this page does not answer ${operation}`);
    return model.answers[operation].call(model, question);
  }

  async *events(operation, asked, signal) {
    const question = { ...this.defaults[operation], ...asked };
    const model = await this.model(question.run);
    if (operation !== "generate" || !model.draw) throw new Refused(`this page does not answer ${operation}`);
    yield* model.draw(question, signal);
  }

  /** The model of a name, or the first. */
  model(name) {
    const run = this.runs.get(name) ?? [...this.runs.values()][0];
    run.model ??= opened(run).catch((error) => {
      run.model = null;
      throw error;
    });
    return run.model;
  }
}

async function opened({ folder, facts }) {
  const own = await json(`${folder}/model.json`);
  const read = async (name) => (await file(`${folder}/${name}`)).buffer;
  return MODELS[facts.kind].open({ ...facts, ...own }, read, (name) => Network.open(`${folder}/${name}`));
}
