// CUDA's threads as fibres of one thread of a CPU, in an order by chance: a kernel computes the same here, slowly.
//
// Every wait, for a block, a warp or another block's flag, lets any other fibre go on, and one block or warp is far slower
// than the others, so that a missing wait shows as a wrong value for some seed. Products of tensor cores are computed from the registers of a warp's lanes.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#define __device__
#define __global__
#define __launch_bounds__(...)
using std::min;

struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
struct Place { int x; };

struct Barrier {
  int count = 0, turn = 0;
};
struct Warp {
  Barrier barrier;
  uint4 a[32];
  uint2 b[32];
};
struct Block {
  Barrier barrier;
  std::vector<Warp> warps;
  std::vector<uint4> memory;
};
struct Fibre {
  ucontext_t context;
  std::vector<char> stack;
  Place block, thread;
  Block* home;
  const Barrier* barrier = nullptr;  // it waits for the next turn of this barrier
  const int* flag = nullptr;         // it reads this flag again, and goes on when it has changed
  const int* read = nullptr;
  int turn = 0, value = 0;
  bool done = false;

  bool waits() const { return (barrier && barrier->turn == turn) || (flag && *flag == value); }
};

static ucontext_t scheduler;
static Fibre* running;
static std::function<void()> body;
static bool ended;
static int threads_of_block;

static void yield() { swapcontext(&running->context, &scheduler); }

static void meet(Barrier& barrier, int size) {
  running->barrier = &barrier, running->turn = barrier.turn, running->read = nullptr;
  if (++barrier.count == size) barrier.count = 0, barrier.turn++;
  yield();
  running->barrier = nullptr;
}

#define threadIdx (running->thread)
#define blockIdx (running->block)
#define SHARED uint4* shared = running->home->memory.data()

static void __syncthreads() { meet(running->home->barrier, threads_of_block); }
static Warp& own_warp() { return running->home->warps[threadIdx.x / 32]; }
static void __syncwarp() { meet(own_warp().barrier, 32); }

static float from_bf16(unsigned word, int half) {
  unsigned bits = half ? word & 0xffff0000u : word << 16;
  float found;
  memcpy(&found, &bits, 4);
  return found;
}

static unsigned bf16(float value) {
  unsigned bits;
  memcpy(&bits, &value, 4);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static unsigned pair(float low, float high) { return bf16(low) | bf16(high) << 16; }

// mma.m16n8k16, rows by columns: A [16, 16], B [16, 8], the sums [16, 8], as PTX lays them over the lanes of a warp.
static void multiply_tile(float (&sum)[4], uint4 a, uint2 b) {
  Warp& warp = own_warp();
  int lane = threadIdx.x % 32;
  warp.a[lane] = a, warp.b[lane] = b;
  __syncwarp();
  for (int r = 0; r < 4; r++) {
    int row = lane / 4 + (r >= 2 ? 8 : 0), column = lane % 4 * 2 + r % 2;
    for (int k = 0; k < 16; k++) {
      const uint4& from = warp.a[row % 8 * 4 + k % 8 / 2];
      const uint2& other = warp.b[column * 4 + k % 8 / 2];
      unsigned of_a = k < 8 ? (row < 8 ? from.x : from.y) : (row < 8 ? from.z : from.w);
      sum[r] += from_bf16(of_a, k % 2) * from_bf16(k < 8 ? other.x : other.y, k % 2);
    }
  }
  __syncwarp();
}

static int acquire(const int* flag) {
  if (running->read == flag) running->flag = flag;
  yield();
  running->flag = nullptr, running->read = flag, running->value = *flag;
  return *flag;
}
static void release(int* flag, int value) { yield(), *flag = value, yield(); }
static uint2 exchanged(const uint2* place) { return *place; }
static float2 exchanged(const float2* place) { return *place; }

static void begin() {
  body();
  ended = true;
  yield();
}

static void run(int blocks, int threads, int shared_bytes, unsigned seed, std::function<void()> kernel) {
  body = kernel, threads_of_block = threads;
  std::vector<Block> homes(blocks);
  std::vector<Fibre> fibres(blocks * threads);
  for (Block& home : homes) {
    home.warps.resize(threads / 32);
    home.memory.assign(shared_bytes / 16, {0x7fc00000u, 0x7fc00000u, 0x7fc00000u, 0x7fc00000u});  // no numbers
  }
  std::vector<Fibre*> alive;
  for (int index = 0; index < blocks * threads; index++) {
    Fibre& fibre = fibres[index];
    fibre.stack.resize(1 << 16);
    fibre.block.x = index / threads, fibre.thread.x = index % threads, fibre.home = &homes[index / threads];
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.data(), fibre.context.uc_stack.ss_size = fibre.stack.size();
    makecontext(&fibre.context, begin, 0);
    alive.push_back(&fibre);
  }
  std::mt19937 chance(seed);
  int slow = chance() % (blocks * threads / 32), width = seed % 2 ? 1 : threads / 32;  // a warp, or a block
  auto is_slow = [&](const Fibre* one) { return (one->block.x * threads + one->thread.x) / 32 / width == slow / width; };
  while (!alive.empty()) {
    std::vector<Fibre*> ready, late;
    for (Fibre* one : alive)
      if (!one->waits()) (is_slow(one) ? late : ready).push_back(one);
    if (ready.empty() || chance() % 16 == 0) ready.insert(ready.end(), late.begin(), late.end());
    std::shuffle(ready.begin(), ready.end(), chance);
    for (Fibre* one : ready) {
      running = one, ended = false;
      swapcontext(&scheduler, &one->context);
      one->done = ended;
    }
    alive.erase(std::remove_if(alive.begin(), alive.end(), [](Fibre* one) { return one->done; }), alive.end());
  }
}
