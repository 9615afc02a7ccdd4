// A recurrent layer over a whole window in one launch: the weights stay on the chip, the blocks exchange states.
//
// Block j owns units 16 j .. 16 j + 15, a tile. Forward it multiplies the rows of all G gates of its units, [16 G, H],
// by h [H, B]; backward G blocks together own 16 G units, and block `rank` of them multiplies the transposed rows of
// gate `rank`, [16 G, H], by that gate's part of d z [H, B]: the same product with the same tiles. A warp holds the
// columns of PER tiles, REGISTERS of them in registers and the others in shared memory; the sums of the warps are added
// in shared memory in a fixed order. A block publishes its tile of h or d z in global memory, rounded to bf16, and then
// its number of steps (`flags`); a warp waits for the tiles that it multiplies. All blocks must be resident at once.
//
// Two buffers suffice: who writes the tile of step t + 2 has seen the flags t + 1 of all blocks, each of which was set
// after its block had read the tiles of step t.
//
// The sizes are in capitals: persistent_product.cu has them, and stands before this file when it is compiled.

// One unit's step: `z` are the sums of the gates' inputs with `x`, `product` the sums of U h; `c` is the state beside h.
__device__ float forward_unit(const float* x, const float* product, float bias, float& c, float* saved) {
#if CELL == LSTM
  float i = sigmoid(x[0] + product[0]), f = sigmoid(x[1] + product[1]);
  float g = tanhf(x[2] + product[2]), o = sigmoid(x[3] + product[3]);
  saved[0] = i, saved[1] = f, saved[2] = g, saved[3] = o, saved[4] = c;
  c = f * c + i * g;
  return o * tanhf(c);
#elif CELL == GRU  // c is h before
  float r = sigmoid(x[0] + product[0]), z = sigmoid(x[1] + product[1]);
  float u = product[2] + bias, n = tanhf(x[2] + r * u);
  saved[0] = r, saved[1] = z, saved[2] = n, saved[3] = u, saved[4] = c;
  c = n + z * (c - n);
  return c;
#else
  float h = x[0] + product[0];
  h = CELL == TANH ? tanhf(h) : fmaxf(h, 0);
  saved[0] = h;
  return h;
#endif
}

// The gradients of one unit's sums, as they reach the inputs (`d_x`) and the products U h (`d_u`), from the gradient of
// h and the one that is carried beside the products: d c of an LSTM, and what reaches h past the gates of a GRU.
__device__ void backward_unit(float d_h, float& carried, const float* saved, float* d_x, float* d_u) {
#if CELL == LSTM
  float i = saved[0], f = saved[1], g = saved[2], o = saved[3], before = saved[4];
  float c = tanhf(f * before + i * g);
  float d_c = carried + d_h * o * (1 - c * c);
  d_x[0] = d_c * g * i * (1 - i);
  d_x[1] = d_c * before * f * (1 - f);
  d_x[2] = d_c * i * (1 - g * g);
  d_x[3] = d_h * c * o * (1 - o);
  carried = d_c * f;
#elif CELL == GRU
  float r = saved[0], z = saved[1], n = saved[2], u = saved[3], before = saved[4];
  d_h += carried;
  d_x[1] = d_h * (before - n) * z * (1 - z);
  d_x[2] = d_h * (1 - z) * (1 - n * n);
  d_x[0] = d_x[2] * u * r * (1 - r);
  carried = d_h * z;
#else
  float h = saved[0];
  d_x[0] = d_h * (CELL == TANH ? 1 - h * h : h > 0 ? 1.f : 0.f);
#endif
  for (int gate = 0; gate < GATES; gate++) d_u[gate] = d_x[gate];
#if CELL == GRU
  d_u[2] *= r;
#endif
}

// drive [T, B, G H] = W x + b; weight [G H, H]; bias [H] of a GRU's U_n h; h, c [B, H]; outputs [T, B, H]; last_c
// [B, H]; saved [T, BLOCKS, GROUPS, 2, SAVED, ITEMS] or null; tiles [2, TILES, TILE] zeros; flags [BLOCKS] zeros.
extern "C" __global__ void __launch_bounds__(WARPS * 32, 1)
forward(int steps, const float* drive, const float* weight, const float* bias, const float* h, const float* c,
        float* outputs, float* last_c, float* saved, word* tiles, int* flags) {
  SHARED;
  float* partial = parts_of(shared);
  Item item(threadIdx.x);
  Matrix matrix(shared, [&](int gate, int row, int column) {
    return element(weight, gate, blockIdx.x * 16 + row, column);
  });

  float state[GROUPS][2] = {};
  for (int group = 0; group < GROUPS; group++) {
    float first[2] = {};
    for (int half = 0; half < 2; half++)
      if (item.real(group, half)) {
        first[half] = h[item.at(0, group, half)];
        state[group][half] = CELL == LSTM ? c[item.at(0, group, half)] : first[half];
      }
    if (item.placed(group)) tiles[blockIdx.x * TILE + item.place(group)] = pair(first[0], first[1]);
  }
  publish(flags, 1);

  int turn = 0;
  for (int t = 0; t < steps; t++) {
    const word* before = tiles + t % 2 * TILES * TILE;
    word* after = tiles + (t + 1) % 2 * TILES * TILE;
    matrix.wait(flags, t + 1);
#pragma unroll
    for (int group = 0; group < GROUPS; group++, turn ^= 1) {
      float x[2][GATES] = {}, extra[2] = {};
      for (int half = 0; half < 2; half++)
        if (item.real(group, half)) {
          for (int gate = 0; gate < GATES; gate++) x[half][gate] = drive[item.at(t, group, half, gate)];
          if (CELL == GRU) extra[half] = bias[item.unit(half)];
        }
      float* sums = partial + turn * WARPS * PARTIAL;
      matrix.multiply<0, GATES>((const uint2*)before, group, sums);
      __syncthreads();
      float2 product[GATES];
      for (int gate = 0; gate < GATES; gate++) product[gate] = add_warps(sums, item, gate);
      float found[2] = {};
      for (int half = 0; half < 2; half++)
        if (item.real(group, half)) {
          float of_h[GATES], kept[SAVED];
          for (int gate = 0; gate < GATES; gate++) of_h[gate] = half ? product[gate].y : product[gate].x;
          found[half] = forward_unit(x[half], of_h, extra[half], state[group][half], kept);
          outputs[item.at(t, group, half)] = found[half];
          if (saved)
            for (int which = 0; which < SAVED; which++) saved[item.saved(t, group, half, which)] = kept[which];
        }
      if (item.placed(group)) after[blockIdx.x * TILE + item.place(group)] = pair(found[0], found[1]);
    }
    publish(flags, t + 2);
  }
  if (CELL == LSTM)
    for (int group = 0; group < GROUPS; group++)
      for (int half = 0; half < 2; half++)
        if (item.real(group, half)) last_c[item.at(0, group, half)] = state[group][half];
}

// d_outputs [T, B, H]; d_last [B, H] of an LSTM's last c; d_x and d_u [T, B, G H] of the sums' parts, one array where
// they are equal; d_h, d_c [B, H]; tiles [2, G, TILES, TILE] zeros; sums [2, BLOCKS, G, GROUPS, ITEMS] of two floats;
// flags [2, BLOCKS] zeros: of the tiles, and of the sums.
extern "C" __global__ void __launch_bounds__(WARPS * 32, 1)
backward(int steps, const float* d_outputs, const float* d_last, const float* weight, const float* saved, float* d_x,
         float* d_u, float* d_h, float* d_c, word* tiles, float2* sums, int* flags) {
  SHARED;
  float* partial = parts_of(shared);
  Item item(threadIdx.x);
  int rank = blockIdx.x % GATES, leader = blockIdx.x - rank;
  Matrix matrix(shared, [&](int m, int row, int column) {
    return element(weight, rank, column, (leader + m) * 16 + row);
  });

  float carried[GROUPS][2] = {};
  if (CELL == LSTM)
    for (int group = 0; group < GROUPS; group++)
      for (int half = 0; half < 2; half++)
        if (item.real(group, half)) carried[group][half] = d_last[item.at(0, group, half)];

  int turn = 0;
  for (int done = 0; done <= steps; done++) {
    int t = steps - 1 - done;
    float2* sums_before = sums + (done + 1) % 2 * BLOCKS * GATES * GROUPS * ITEMS;
    float2* sums_after = sums + done % 2 * BLOCKS * GATES * GROUPS * ITEMS;
    word* now = tiles + done % 2 * GATES * TILES * TILE;
    if (done) {
      if (threadIdx.x < GATES)
        while (acquire(flags + BLOCKS + leader + threadIdx.x) < done) {}
      __syncthreads();
    }
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
      float2 of_product = {0, 0};
      if (done && item.there)
        for (int source = 0; source < GATES; source++) {
          float2 one = exchanged(sums_before + (((leader + source) * GATES + rank) * GROUPS + group) * ITEMS + item.index);
          of_product.x += one.x, of_product.y += one.y;
        }
      float found[GATES][2] = {};
      for (int half = 0; half < 2; half++)
        if (item.real(group, half)) {
          float of_h = half ? of_product.y : of_product.x;
          if (t < 0) {
            d_h[item.at(0, group, half)] = CELL == GRU ? of_h + carried[group][half] : of_h;
            if (CELL == LSTM) d_c[item.at(0, group, half)] = carried[group][half];
            continue;
          }
          float kept[SAVED], to_x[GATES], to_u[GATES];
          for (int which = 0; which < SAVED; which++) kept[which] = saved[item.saved(t, group, half, which)];
          of_h += d_outputs[item.at(t, group, half)];
          backward_unit(of_h, carried[group][half], kept, to_x, to_u);
          for (int gate = 0; gate < GATES; gate++) {
            d_x[item.at(t, group, half, gate)] = to_x[gate];
            if (CELL == GRU) d_u[item.at(t, group, half, gate)] = to_u[gate];
            found[gate][half] = to_u[gate];
          }
        }
      if (t >= 0 && item.placed(group))
        for (int gate = 0; gate < GATES; gate++)
          now[(gate * TILES + blockIdx.x) * TILE + item.place(group)] = pair(found[gate][0], found[gate][1]);
    }
    if (t < 0) break;
    publish(flags, done + 1);
    matrix.wait(flags, done + 1);
#pragma unroll
    for (int group = 0; group < GROUPS; group++, turn ^= 1) {
      float* here = partial + turn * WARPS * PARTIAL;
      matrix.multiply<0, GATES>((const uint2*)(now + rank * TILES * TILE), group, here);
      __syncthreads();
      if (item.there)
        for (int m = 0; m < GATES; m++)
          sums_after[((blockIdx.x * GATES + m) * GROUPS + group) * ITEMS + item.index] = add_warps(here, item, m);
    }
    publish(flags + BLOCKS, done + 1);
  }
}
