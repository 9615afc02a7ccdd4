// A graph that onnxruntime-web runs, one call after another. A tensor is {type, data, dims}.

import { file } from "./files.js";
import * as ort from "./ort.wasm.bundle.min.mjs";

ort.env.wasm.numThreads = 1;

let turn = Promise.resolve();

export class Network {
  constructor(session) { this.session = session; }

  static async open(address) {
    ort.env.wasm.wasmBinary ??= await file("ort-wasm-simd-threaded.wasm");
    const options = { executionProviders: ["wasm"], logSeverityLevel: 3 };
    return new Network(await ort.InferenceSession.create(await file(address), options));
  }

  /** The outputs for inputs, both by their names. */
  run(inputs) {
    const feeds = Object.fromEntries(Object.entries(inputs).map(([name, { type, data, dims }]) =>
      [name, new ort.Tensor(type, data, dims)]));
    const found = turn.then(() => this.session.run(feeds));
    turn = found.catch(() => {});
    return found;
  }
}
