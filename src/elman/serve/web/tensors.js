// Tensors as {type, data, dims}, and states, which are lists of them.

export const symbols = (ids) => ({ type: "int64", data: BigInt64Array.from(ids, BigInt), dims: [ids.length] });

export const floats = (data, dims) => ({ type: "float32", data, dims });

/** The state with which a model begins, from its facts. */
export function beginning(states) {
  return states.map(({ shape, dtype, values }) => {
    const size = shape.reduce((product, one) => product * one, 1);
    return { type: dtype, data: values ? Float32Array.from(values) : new Float32Array(size), dims: shape };
  });
}

/** The tensors of a state as inputs or outputs of a graph: `state_0`, `state_1`, ... */
export const named = (state, prefix = "state_") => Object.fromEntries(state.map((one, at) => [`${prefix}${at}`, one]));

/** The tensors of these names among the outputs of a graph. */
export const taken = (found, count, prefix = "next_state_") => Array.from({ length: count }, (_, at) => {
  const { type, data, dims } = found[`${prefix}${at}`];
  return { type, data, dims };
});

/** Rows of a tensor, in this order. */
export function rowsOf({ type, data, dims }, rows) {
  const width = dims.slice(1).reduce((product, one) => product * one, 1);
  const found = new data.constructor(rows.length * width);
  rows.forEach((row, at) => found.set(data.subarray(row * width, (row + 1) * width), at * width));
  return { type, data: found, dims: [rows.length, ...dims.slice(1)] };
}

/** What is computed once for a node of a text; a failure is forgotten, so that it can be tried again. */
export function once(node, compute) {
  node.after ??= compute().catch((error) => {
    node.after = null;
    throw error;
  });
  return node.after;
}
