// Hopper's own instructions (sm_90a): mbarriers, bulk tensor copies, wgmma. Includes nothing, so that NVRTC needs no path
// to a toolkit. Tiles in shared memory are rows of 128 bytes in the 128-byte swizzle that tensor copies write.
#pragma once

namespace zoi::sm90 {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

struct alignas(64) TensorMap {
  u64 words[16];
};

__device__ __forceinline__ u32 smem(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

// ---- mbarriers: one phase bit each; a waiter passes the parity of the phase that it waits to see completed ----
__device__ __forceinline__ void barrier_init(u64* bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(bar)), "r"(count));
}
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void expect(u64* bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(u64* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem(bar)) : "memory");
}
__device__ __forceinline__ void arrive_at(u64* bar, u32 block) {
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(smem(bar)),
      "r"(block)
      : "memory");
}
__device__ __forceinline__ void wait(u64* bar, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, 0x989680;\n"
      "@done bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(smem(bar)),
      "r"(parity)
      : "memory");
}
// A slot of a ring and the parity of its current pass.
template <int N>
struct Ring {
  u32 slot = 0, parity = 0;
  __device__ __forceinline__ void next() {
    if (++slot == N) {
      slot = 0;
      parity ^= 1;
    }
  }
};

__device__ __forceinline__ void group_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void group_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
template <int N>
__device__ __forceinline__ void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
__device__ __forceinline__ void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

// ---- tensor copies ----
__device__ __forceinline__ void prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ __forceinline__ void load_2d(void* to, const TensorMap* map, u64* bar, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          smem(to)),
      "l"(map), "r"(smem(bar)), "r"(x), "r"(y)
      : "memory");
}
// To the same place of every block in the mask; each block's barrier at that place is told.
__device__ __forceinline__ void load_2d_shared(void* to, const TensorMap* map, u64* bar, int x, int y, u16 mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%4, %5}], [%2], %3;" ::"r"(smem(to)),
      "l"(map), "r"(smem(bar)), "h"(mask), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void load_5d(void* to, const TensorMap* map, u64* bar, int a, int b, int c, int d, int e) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(smem(to)),
      "l"(map), "r"(smem(bar)), "r"(a), "r"(b), "r"(c), "r"(d), "r"(e)
      : "memory");
}
__device__ __forceinline__ void store_2d(const TensorMap* map, const void* from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(smem(from)), "r"(x), "r"(y)
               : "memory");
}
__device__ __forceinline__ void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until the stores committed have read shared memory; they may not have reached global memory yet.
__device__ __forceinline__ void store_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ __forceinline__ void store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ __forceinline__ void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- 16-bit values, two in a register ----
struct Bf16 {};
struct F16 {};
struct E4m3 {};

template <class T>
__device__ __forceinline__ u32 pack2(float low, float high);
template <>
__device__ __forceinline__ u32 pack2<Bf16>(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
template <>
__device__ __forceinline__ u32 pack2<F16>(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// Four 8x8 matrices of 16-bit values; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void store_matrix(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

__device__ __forceinline__ float exp2_fast(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// ---- wgmma ----
// Contiguous along the contraction: groups of 8 rows lie 1024 bytes apart.
__device__ __forceinline__ u64 tile_k(const void* p) {
  return static_cast<u64>((smem(p) & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}
// Contiguous across the contraction: each 64 columns are a block of `block_bytes`, 8 steps of contraction 1024 bytes.
__device__ __forceinline__ u64 tile_mn(const void* p, u32 block_bytes) {
  return static_cast<u64>((smem(p) & 0x3ffff) >> 4) | (static_cast<u64>(block_bytes >> 4) << 16) | (64ull << 32) |
         (1ull << 62);
}
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// Keeps the compiler from moving reads and writes of accumulators across this point.
template <int N>
__device__ __forceinline__ void hold(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int N>
__device__ __forceinline__ void hold(u32 (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

// D[64, N] (+)= A[64, 16] B[16, N]. ss: both in shared memory; rs: A in registers. kTransB: B contiguous along N.
template <class T, int N, int kTransB>
struct Wgmma;

#define ZOI_D8(b) "+f"(d[b]), "+f"(d[b + 1]), "+f"(d[b + 2]), "+f"(d[b + 3]), "+f"(d[b + 4]), "+f"(d[b + 5]), \
                  "+f"(d[b + 6]), "+f"(d[b + 7])
#define ZOI_D16(b) ZOI_D8(b), ZOI_D8(b + 8)
#define ZOI_D32(b) ZOI_D16(b), ZOI_D16(b + 16)
#define ZOI_D40(b) ZOI_D32(b), ZOI_D8(b + 32)
#define ZOI_D48(b) ZOI_D32(b), ZOI_D16(b + 32)
#define ZOI_D64(b) ZOI_D32(b), ZOI_D32(b + 32)
#define ZOI_D80(b) ZOI_D64(b), ZOI_D16(b + 64)
#define ZOI_D88(b) ZOI_D80(b), ZOI_D8(b + 80)
#define ZOI_D96(b) ZOI_D64(b), ZOI_D32(b + 64)
#define ZOI_D128(b) ZOI_D64(b), ZOI_D64(b + 64)
#define ZOI_S16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define ZOI_S32 ZOI_S16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define ZOI_S40 ZOI_S32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define ZOI_S48 ZOI_S40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define ZOI_S64 ZOI_S48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define ZOI_S80 ZOI_S64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define ZOI_S88 ZOI_S80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define ZOI_S96 ZOI_S88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define ZOI_S128                                                                                                \
  ZOI_S96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116," \
          "%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define ZOI_WGMMA_16(TAG, TYPE, N, R, I0, I1, I2, I3, I4, I5, I6)                                              \
  template <int kTransB>                                                                                          \
  struct Wgmma<TAG, N, kTransB> {                                                                                 \
    static __device__ __forceinline__ void ss(float (&d)[R], u64 a, u64 b, int accumulate) {                      \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #I2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N          \
                   "k16.f32." TYPE "." TYPE " {" ZOI_S##R "}, %" #I0 ", %" #I1 ", p, 1, 1, 0, %" #I3 ";\n}"       \
                   : ZOI_D##R(0)                                                                                  \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(kTransB));                                              \
    }                                                                                                             \
    static __device__ __forceinline__ void rs(float (&d)[R], u32 a0, u32 a1, u32 a2, u32 a3, u64 b,               \
                                              int accumulate) {                                                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #I5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N          \
                   "k16.f32." TYPE "." TYPE " {" ZOI_S##R "}, {%" #I0 ",%" #I1 ",%" #I2 ",%" #I3 "}, %" #I4       \
                   ", p, 1, 1, %" #I6 ";\n}"                                                                      \
                   : ZOI_D##R(0)                                                                                  \
                   : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate), "n"(kTransB));                  \
    }                                                                                                             \
  };
#define ZOI_WGMMA_8(N, R, I0, I1, I2)                                                                             \
  template <>                                                                                                     \
  struct Wgmma<E4m3, N, 0> {                                                                                      \
    static __device__ __forceinline__ void ss(float (&d)[R], u64 a, u64 b, int accumulate) {                      \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #I2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N          \
                   "k32.f32.e4m3.e4m3 {" ZOI_S##R "}, %" #I0 ", %" #I1 ", p, 1, 1;\n}"                            \
                   : ZOI_D##R(0)                                                                                  \
                   : "l"(a), "l"(b), "r"(accumulate));                                                            \
    }                                                                                                             \
  };
ZOI_WGMMA_16(Bf16, "bf16", 32, 16, 16, 17, 18, 19, 20, 21, 22)
ZOI_WGMMA_16(F16, "f16", 32, 16, 16, 17, 18, 19, 20, 21, 22)
ZOI_WGMMA_8(32, 16, 16, 17, 18)
ZOI_WGMMA_16(Bf16, "bf16", 64, 32, 32, 33, 34, 35, 36, 37, 38)
ZOI_WGMMA_16(F16, "f16", 64, 32, 32, 33, 34, 35, 36, 37, 38)
ZOI_WGMMA_8(64, 32, 32, 33, 34)
ZOI_WGMMA_16(Bf16, "bf16", 80, 40, 40, 41, 42, 43, 44, 45, 46)
ZOI_WGMMA_16(F16, "f16", 80, 40, 40, 41, 42, 43, 44, 45, 46)
ZOI_WGMMA_16(Bf16, "bf16", 96, 48, 48, 49, 50, 51, 52, 53, 54)
ZOI_WGMMA_16(F16, "f16", 96, 48, 48, 49, 50, 51, 52, 53, 54)
ZOI_WGMMA_8(96, 48, 48, 49, 50)
ZOI_WGMMA_16(Bf16, "bf16", 128, 64, 64, 65, 66, 67, 68, 69, 70)
ZOI_WGMMA_16(F16, "f16", 128, 64, 64, 65, 66, 67, 68, 69, 70)
ZOI_WGMMA_8(128, 64, 64, 65, 66)
ZOI_WGMMA_16(Bf16, "bf16", 160, 80, 80, 81, 82, 83, 84, 85, 86)
ZOI_WGMMA_16(F16, "f16", 160, 80, 80, 81, 82, 83, 84, 85, 86)
ZOI_WGMMA_8(160, 80, 80, 81, 82)
ZOI_WGMMA_16(Bf16, "bf16", 176, 88, 88, 89, 90, 91, 92, 93, 94)
ZOI_WGMMA_16(F16, "f16", 176, 88, 88, 89, 90, 91, 92, 93, 94)
ZOI_WGMMA_16(Bf16, "bf16", 192, 96, 96, 97, 98, 99, 100, 101, 102)
ZOI_WGMMA_16(F16, "f16", 192, 96, 96, 97, 98, 99, 100, 101, 102)
ZOI_WGMMA_8(192, 96, 96, 97, 98)
ZOI_WGMMA_16(Bf16, "bf16", 256, 128, 128, 129, 130, 131, 132, 133, 134)
ZOI_WGMMA_16(F16, "f16", 256, 128, 128, 129, 130, 131, 132, 133, 134)
ZOI_WGMMA_8(256, 128, 128, 129, 130)

}  // namespace zoi::sm90
