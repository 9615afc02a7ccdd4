// The GRU whose reset is before the product (the thesis' 2.29-2.32), n = tanh(W x + b + U (r h)), over a whole window in
// one launch, as persistent.cu has it for cells whose products all read h.
//
// A step needs two exchanges. Forward: h, from which every block forms r and z of its 16 units, and r h, from which it
// forms n and the new h. Backward: the gradient of n's sum, which gives the gradient of r h, and the gradients of
// r's and z's sums, which give the gradient of h. Both ways a block holds the rows of its own units, backward of the transposed matrices.
//
// `flags` counts the exchanges of a block. One buffer of each kind suffices: who writes h again has seen the flags of
// r h of all blocks, each of which was set after its block had read h; and so on.

// drive [T, B, 3 H] = W x + b; weight [3 H, H]; h [B, H]; outputs [T, B, H]; resets [T, B, H] = r h; saved [T, BLOCKS,
// GROUPS, 2, SAVED, ITEMS] or null; tiles [2, TILES, TILE] zeros; flags [BLOCKS] zeros.
extern "C" __global__ void __launch_bounds__(WARPS * 32, 1)
forward(int steps, const float* drive, const float* weight, const float*, const float* h, const float*, float* outputs,
        float* resets, float* saved, word* tiles, int* flags) {
  SHARED;
  float* partial = parts_of(shared);
  Item item(threadIdx.x);
  Matrix matrix(shared, [&](int gate, int row, int column) {
    return element(weight, gate, blockIdx.x * 16 + row, column);
  });
  word* of_h = tiles;
  word* of_reset = tiles + TILES * TILE;

  float state[GROUPS][2] = {}, keep[GROUPS][2] = {};
  for (int group = 0; group < GROUPS; group++) {
    for (int half = 0; half < 2; half++)
      if (item.real(group, half)) state[group][half] = h[item.at(0, group, half)];
    if (item.placed(group)) of_h[blockIdx.x * TILE + item.place(group)] = pair(state[group][0], state[group][1]);
  }
  publish(flags, 1);

  int turn = 0;
  for (int t = 0; t < steps; t++) {
    matrix.wait(flags, 2 * t + 1);
#pragma unroll
    for (int group = 0; group < GROUPS; group++, turn ^= 1) {
      float* sums = partial + turn * WARPS * PARTIAL;
      matrix.multiply<0, 2>((const uint2*)of_h, group, sums);
      __syncthreads();
      float2 of_r = add_warps(sums, item, 0), of_z = add_warps(sums, item, 1);
      float product[2] = {};
      for (int half = 0; half < 2; half++)
        if (item.real(group, half)) {
          float r = sigmoid(drive[item.at(t, group, half, 0)] + (half ? of_r.y : of_r.x));
          keep[group][half] = sigmoid(drive[item.at(t, group, half, 1)] + (half ? of_z.y : of_z.x));
          product[half] = r * state[group][half];
          resets[item.at(t, group, half)] = product[half];
          if (saved) saved[item.saved(t, group, half, 0)] = r;
        }
      if (item.placed(group)) of_reset[blockIdx.x * TILE + item.place(group)] = pair(product[0], product[1]);
    }
    publish(flags, 2 * t + 2);
    matrix.wait(flags, 2 * t + 2);
#pragma unroll
    for (int group = 0; group < GROUPS; group++, turn ^= 1) {
      float* sums = partial + turn * WARPS * PARTIAL;
      matrix.multiply<2, 3>((const uint2*)of_reset, group, sums);
      __syncthreads();
      float2 of_n = add_warps(sums, item, 2);
      for (int half = 0; half < 2; half++)
        if (item.real(group, half)) {
          float n = tanhf(drive[item.at(t, group, half, 2)] + (half ? of_n.y : of_n.x));
          float z = keep[group][half], before = state[group][half], kept[] = {z, n, before};
          if (saved)
            for (int which = 1; which < SAVED; which++) saved[item.saved(t, group, half, which)] = kept[which - 1];
          state[group][half] = n + z * (before - n);
          outputs[item.at(t, group, half)] = state[group][half];
        }
      if (item.placed(group)) of_h[blockIdx.x * TILE + item.place(group)] = pair(state[group][0], state[group][1]);
    }
    publish(flags, 2 * t + 3);
  }
}

// d_outputs [T, B, H]; d_x [T, B, 3 H] of the sums; d_h [B, H]; tiles [3, TILES, TILE] zeros, of the sums' gradients;
// flags [BLOCKS] zeros.
extern "C" __global__ void __launch_bounds__(WARPS * 32, 1)
backward(int steps, const float* d_outputs, const float*, const float* weight, const float* saved, float* d_x, float*,
         float* d_h, float*, word* tiles, float2*, int* flags) {
  SHARED;
  float* partial = parts_of(shared);
  Item item(threadIdx.x);
  Matrix matrix(shared, [&](int gate, int row, int column) {
    return element(weight, gate, column, blockIdx.x * 16 + row);
  });

  float carried[GROUPS][2] = {};  // the gradient of h before the step, as far as it is known
  float of_z[GROUPS][2] = {};
  int turn = 0;
  for (int done = 0; done < steps; done++) {
    int t = steps - 1 - done;
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
      float of_n[2] = {};
      for (int half = 0; half < 2; half++)
        if (item.real(group, half)) {
          float z = saved[item.saved(t, group, half, 1)], n = saved[item.saved(t, group, half, 2)];
          float before = saved[item.saved(t, group, half, 3)];
          float d = carried[group][half] + d_outputs[item.at(t, group, half)];
          d_x[item.at(t, group, half, 2)] = of_n[half] = d * (1 - z) * (1 - n * n);
          d_x[item.at(t, group, half, 1)] = of_z[group][half] = d * (before - n) * z * (1 - z);
          carried[group][half] = d * z;
        }
      if (item.placed(group)) tiles[2 * TILES * TILE + blockIdx.x * TILE + item.place(group)] = pair(of_n[0], of_n[1]);
    }
    publish(flags, 2 * done + 1);
    matrix.wait(flags, 2 * done + 1);
#pragma unroll
    for (int group = 0; group < GROUPS; group++, turn ^= 1) {
      float* sums = partial + turn * WARPS * PARTIAL;
      matrix.multiply<2, 3>((const uint2*)(tiles + 2 * TILES * TILE), group, sums);
      __syncthreads();
      float2 product = add_warps(sums, item, 2);
      float of_r[2] = {};
      for (int half = 0; half < 2; half++)
        if (item.real(group, half)) {
          float r = saved[item.saved(t, group, half, 0)], before = saved[item.saved(t, group, half, 3)];
          float d = half ? product.y : product.x;
          d_x[item.at(t, group, half, 0)] = of_r[half] = d * before * r * (1 - r);
          carried[group][half] += d * r;
        }
      if (item.placed(group)) {  // of z only now: till here others may have read the one of the step after
        int at = blockIdx.x * TILE + item.place(group);
        tiles[at] = pair(of_r[0], of_r[1]), tiles[TILES * TILE + at] = pair(of_z[group][0], of_z[group][1]);
      }
    }
    publish(flags, 2 * done + 2);
    matrix.wait(flags, 2 * done + 2);
#pragma unroll
    for (int group = 0; group < GROUPS; group++, turn ^= 1) {
      float* sums = partial + turn * WARPS * PARTIAL;
      matrix.multiply<0, 1>((const uint2*)tiles, group, sums);
      matrix.multiply<1, 2>((const uint2*)(tiles + TILES * TILE), group, sums);
      __syncthreads();
      float2 of_r = add_warps(sums, item, 0), of_z = add_warps(sums, item, 1);
      carried[group][0] += of_r.x + of_z.x, carried[group][1] += of_r.y + of_z.y;
    }
  }
  for (int group = 0; group < GROUPS; group++)
    for (int half = 0; half < 2; half++)
      if (item.real(group, half)) d_h[item.at(0, group, half)] = carried[group][half];
}
