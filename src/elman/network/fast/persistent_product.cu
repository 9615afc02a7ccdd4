// What the kernels of persistent.cu and persistent_reset_before.cu share: the product of a block's rows with the tiles
// that all blocks publish, on tensor cores, in bf16 with float32 sums, and who owns which unit of which row.
//
// By the compiler's options: CELL, GATES (G), UNITS (H), ROWS (B), BLOCKS, WARPS, PER (tiles of a warp), REGISTERS (of
// these, in registers), COLUMNS (tiles of 8 rows), WIDE (tiles of 8 rows that are multiplied at once), GROUPS (COLUMNS /
// WIDE, rounded up).

#define LSTM 0
#define GRU 1
#define TANH 2
#define RELU 3
#define RESET_BEFORE 4

#if CELL == LSTM || CELL == GRU
#define SAVED 5  // i f g o and c before; r z n, U_n h + b and h before
#elif CELL == RESET_BEFORE
#define SAVED 4  // r z n and h before
#else
#define SAVED 1  // h
#endif

typedef unsigned int word;

#ifdef __CUDACC__
#define SHARED extern __shared__ uint4 shared[]

__device__ void multiply_tile(float (&sum)[4], uint4 a, uint2 b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

__device__ word pair(float low, float high) {
  word found;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(found) : "f"(high), "f"(low));
  return found;
}

__device__ int acquire(const int* flag) {
  int found;
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
  return found;
}

__device__ void release(int* flag, int value) {
  asm volatile("st.release.gpu.global.b32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
}

__device__ uint2 exchanged(const uint2* place) {  // from L2: another block has written it
  uint2 found;
  asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];" : "=r"(found.x), "=r"(found.y) : "l"(place) : "memory");
  return found;
}

__device__ float2 exchanged(const float2* place) {
  float2 found;
  asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];" : "=f"(found.x), "=f"(found.y) : "l"(place) : "memory");
  return found;
}
#endif

#define TILES (WARPS * PER)  // of the buffers: those from BLOCKS on stay zero
#define TILE (COLUMNS * 64)  // words of a tile of the buffers
#define ITEMS (WIDE * 64)    // pairs of units, 8 apart, of a row of a group: one for a thread
#define PARTIAL (GATES * WIDE * 4 * 32)

// A thread's part of each group: units `unit` and `unit + 8` of its block's tile in `row`.
struct Item {
  bool there;
  int index, lane, part, column;

  __device__ explicit Item(int thread)
      : there(thread < ITEMS), index(thread), lane(thread % 32), part(thread / 32 % 2), column(thread / 64) {}
  __device__ int row(int group) const { return (group * WIDE + column) * 8 + lane % 4 * 2 + part; }
  __device__ int unit(int half) const { return blockIdx.x * 16 + lane / 4 + 8 * half; }
  __device__ bool real(int group, int half) const { return there && row(group) < ROWS && unit(half) < UNITS; }
  __device__ bool placed(int group) const { return there && group * WIDE + column < COLUMNS; }
  // Where the pair stands in a tile: in the order in which a warp reads the second factor of a product.
  __device__ int place(int group) const {
    int unit = lane / 4, row = lane % 4 * 2 + part;
    return (group * WIDE + column) * 64 + (row * 4 + unit % 4) * 2 + unit / 4;
  }
  // Where the unit stands at step t: in [T, B, H], in one gate's part of [T, B, G H], and in what is saved.
  __device__ long long at(int t, int group, int half) const {
    return ((long long)t * ROWS + row(group)) * UNITS + unit(half);
  }
  __device__ long long at(int t, int group, int half, int gate) const {
    return (((long long)t * ROWS + row(group)) * GATES + gate) * UNITS + unit(half);
  }
  __device__ long long saved(int t, int group, int half, int which) const {
    return (((((long long)t * BLOCKS + blockIdx.x) * GROUPS + group) * 2 + half) * SAVED + which) * ITEMS + index;
  }
};

// The element of one gate's matrix of the stack `weight` [G H, H]; 0 beyond its edges.
__device__ float element(const float* weight, int gate, int row, int column) {
  return row < UNITS && column < UNITS ? weight[(gate * UNITS + row) * UNITS + column] : 0.f;
}

// The place of two sets of the warps' parts of sums, [2, WARPS, PARTIAL], behind the stored tiles of a matrix.
__device__ float* parts_of(uint4* shared) { return (float*)(shared + (PER - REGISTERS) * GATES * WARPS * 32); }

// Tell the other blocks that this one has written what they wait for.
__device__ void publish(int* flags, int value) {
  __syncthreads();
  if (threadIdx.x == 0) release(flags + blockIdx.x, value);
}

struct Matrix {
  uint4 held[REGISTERS > 0 ? REGISTERS : 1][GATES];
  uint4* stored;  // [PER - REGISTERS, GATES, WARPS, 32]
  int warp, lane;

  // `value(m, row, column)`: the factor's element in m-tile m. Each word has units 8 apart, like those of a tile.
  template <typename Value>
  __device__ Matrix(uint4* place, Value value) : stored(place), warp(threadIdx.x / 32), lane(threadIdx.x % 32) {
#pragma unroll
    for (int i = 0; i < PER; i++) {
      int first = (warp * PER + i) * 16 + lane % 4, row = lane / 4;
#pragma unroll
      for (int m = 0; m < GATES; m++) {
        uint4 found;
        found.x = pair(value(m, row, first), value(m, row, first + 8));
        found.y = pair(value(m, row + 8, first), value(m, row + 8, first + 8));
        found.z = pair(value(m, row, first + 4), value(m, row, first + 12));
        found.w = pair(value(m, row + 8, first + 4), value(m, row + 8, first + 12));
        if (i < REGISTERS) held[i < REGISTERS ? i : 0][m] = found;
        else stored[(((i - REGISTERS) * GATES + m) * WARPS + warp) * 32 + lane] = found;
      }
    }
  }

  __device__ void wait(const int* flags, int steps) const {
    for (int tile = warp * PER + lane; tile < min((warp + 1) * PER, BLOCKS); tile += 32)
      while (acquire(flags + tile) < steps) {}
    __syncwarp();
  }

  // The warp's part of the product of the m-tiles FIRST to LAST - 1 with the tiles of a group of rows, into `partial`
  // [GATES, WIDE, 4, 32].
  template <int FIRST, int LAST>
  __device__ void multiply(const uint2* tiles, int group, float* partial) const {
    float sum[LAST - FIRST][WIDE][4] = {};
#pragma unroll
    for (int i = 0; i < PER; i++) {
      uint2 b[WIDE];
#pragma unroll
      for (int n = 0; n < WIDE; n++) {
        int column = min(group * WIDE + n, COLUMNS - 1);
        b[n] = exchanged(tiles + ((warp * PER + i) * COLUMNS + column) * 32 + lane);
      }
#pragma unroll
      for (int m = FIRST; m < LAST; m++) {
        uint4 a = i < REGISTERS ? held[i < REGISTERS ? i : 0][m]
                                : stored[(((i - REGISTERS) * GATES + m) * WARPS + warp) * 32 + lane];
#pragma unroll
        for (int n = 0; n < WIDE; n++) multiply_tile(sum[m - FIRST][n], a, b[n]);
      }
    }
#pragma unroll
    for (int m = FIRST; m < LAST; m++)
#pragma unroll
      for (int n = 0; n < WIDE; n++)
#pragma unroll
        for (int r = 0; r < 4; r++)
          partial[((warp * GATES + m) * WIDE + n) * 128 + r * 32 + lane] = sum[m - FIRST][n][r];
  }
};

// The sum of the warps' parts for a thread's item in m-tile m, for both of its units; 0 for a thread without an item.
__device__ float2 add_warps(const float* partial, const Item& item, int m) {
  float2 sum = {0, 0};
  if (!item.there) return sum;
#pragma unroll
  for (int warp = 0; warp < WARPS; warp++) {
    const float* from = partial + ((warp * GATES + m) * WIDE + item.column) * 128 + item.part * 32 + item.lane;
    sum.x += from[0];
    sum.y += from[64];
  }
  return sum;
}

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }
