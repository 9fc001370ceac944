// C = scale * A B^T + bias for few rows of A (at most 64): bound by reading B, the weights, once.
//
// A [M, K], B [N, K], C [M, N], all dense along their last axis, 16-bit; K a multiple of 8.
// A block owns 128 rows of B and a range of K; each warp takes 16 rows straight from global memory into fragments of mma
// (weights by tokens), with the next 128 columns always in flight. A's columns come through shared memory, fetched three steps ahead.
// With several splits of K the parts are added in a fixed order: on Hopper the splits are a cluster, and each block adds its
// share of the tile out of the others' shared memory; elsewhere the parts meet in scratch memory, and the block that comes
// last adds them.
//
// Specialised by: ZOI_TYPE, ZOI_TOKENS (M rounded up to 8, 16, 32 or 64), ZOI_CLUSTER (splits that are a cluster, or 1).
#pragma once
#include "../simd/sm80.cuh"

namespace zoi::sm80 {

struct SmallArgs {
  const u16 *a, *b, *bias;
  u16* c;
  float* parts;        // [tile][split][tokens][128]
  unsigned* counters;  // [tile], zero before and after
  int m, n, k, splits, share;  // share: columns of a split, a multiple of 128
  float scale;
};

template <class T, int kTokens, int kCluster>
struct Small {
  static constexpr int kWarps = 8, kDepth = 128, kBuffers = 4, kChunks = kDepth / 8, kTiles = kTokens / 8;

  // Byte offset of a 16-byte chunk of A in its buffer; odd rows swap halves so that lanes meet no bank twice.
  static __device__ __forceinline__ int place(int row, int chunk) { return (row * kChunks + (chunk ^ ((row & 1) * 4))) * 16; }

#if __CUDA_ARCH__ >= 900
  static __device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
  static __device__ __forceinline__ float4 remote(u32 address, int block) {
    float4 r;
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %4, %5;\n"
        "ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [there];\n}"
        : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w)
        : "r"(address), "r"(block)
        : "memory");
    return r;
  }
#else
  static_assert(kCluster == 1, "clusters are Hopper's");
  static __device__ __forceinline__ void cluster_sync() {}
  static __device__ __forceinline__ float4 remote(u32, int) { return make_float4(0.f, 0.f, 0.f, 0.f); }
#endif

  static __device__ __forceinline__ void fetch(const SmallArgs& g, char* to, int first, int end) {
    for (int at = threadIdx.x; at < kTokens * kChunks; at += kWarps * 32) {
      const int row = at / kChunks, chunk = at - row * kChunks, column = first + chunk * 8;
      const bool real = row < g.m && column < end;
      const u16* from = real ? g.a + static_cast<long long>(row) * g.k + column : g.a;
      const u32 dst = static_cast<u32>(__cvta_generic_to_shared(to + place(row, chunk)));
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(from), "r"(real ? 16 : 0) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  static __device__ void run(const SmallArgs& g) {
    extern __shared__ char shared[];
    constexpr int kBuffer = kTokens * kDepth * 2;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, r = lane >> 2, c = lane & 3;
    const int tile = blockIdx.y, split = blockIdx.x;
    const int begin = split * g.share, end = min(g.k, begin + g.share);
    const int row0 = tile * 128 + warp * 16 + r;
    const u16* b0 = g.b + static_cast<long long>(min(row0, g.n - 1)) * g.k + c * 8;
    const u16* b1 = g.b + static_cast<long long>(min(row0 + 8, g.n - 1)) * g.k + c * 8;

    float acc[kTiles][4];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) acc[t][0] = acc[t][1] = acc[t][2] = acc[t][3] = 0.f;
    uint4 w0[kDepth / 32], w1[kDepth / 32];
    const uint4 zero = make_uint4(0, 0, 0, 0);
    const auto load = [&](int i, int first) {
      const int column = first + i * 32;
      const bool real = column + c * 8 < end;
      w0[i] = real ? stream(b0 + column) : zero;
      w1[i] = real ? stream(b1 + column) : zero;
    };
#pragma unroll
    for (int i = 0; i < kDepth / 32; ++i) load(i, begin);
#pragma unroll
    for (int b = 0; b < kBuffers - 1; ++b) fetch(g, shared + b * kBuffer, begin + b * kDepth, end);
    int buffer = 0;
    for (int first = begin; first < end; first += kDepth, buffer = (buffer + 1) % kBuffers) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kBuffers - 2) : "memory");
      __syncthreads();
      fetch(g, shared + (buffer + kBuffers - 1) % kBuffers * kBuffer, first + (kBuffers - 1) * kDepth, end);
      const char* x = shared + buffer * kBuffer;
#pragma unroll
      for (int i = 0; i < kDepth / 32; ++i) {
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          const uint4 q = *reinterpret_cast<const uint4*>(x + place(t * 8 + r, i * 4 + c));
          mma<T>(acc[t], w0[i].x, w1[i].x, w0[i].y, w1[i].y, q.x, q.y);
          mma<T>(acc[t], w0[i].z, w1[i].z, w0[i].w, w1[i].w, q.z, q.w);
        }
        if (first + kDepth < end) load(i, first + kDepth);
      }
    }

    // [token][128] in shared memory, so that rows of C leave whole.
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    float* out = reinterpret_cast<float*>(shared);
    constexpr int kPitch = 128 + 4;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int e = 0; e < 4; ++e) out[(t * 8 + c * 2 + (e & 1)) * kPitch + warp * 16 + r + (e >> 1) * 8] = acc[t][e];
    __syncthreads();
    const int tokens = min(g.m, kTokens);
    if (g.splits == 1) {
      for (int at = threadIdx.x; at < tokens * 128; at += kWarps * 32) write(g, tile, at, out[(at >> 7) * kPitch + (at & 127)]);
      return;
    }
    if (kCluster > 1) {
      cluster_sync();
      const int share = (tokens * 128 / 4 + kCluster - 1) / kCluster, stop = min(tokens * 32, (split + 1) * share);
      for (int at = split * share + threadIdx.x; at < stop; at += kWarps * 32) {
        const u32 from = static_cast<u32>(__cvta_generic_to_shared(out + (at >> 5) * kPitch + (at & 31) * 4));
        float4 x = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
        for (int s = 0; s < kCluster; ++s) {
          const float4 y = remote(from, s);
          x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
        }
        write(g, tile, at * 4, x.x);
        write(g, tile, at * 4 + 1, x.y);
        write(g, tile, at * 4 + 2, x.z);
        write(g, tile, at * 4 + 3, x.w);
      }
      cluster_sync();
      return;
    }
    float* parts = g.parts + static_cast<long long>(tile) * g.splits * kTokens * 128;
    for (int at = threadIdx.x; at < tokens * 128; at += kWarps * 32)
      __stcg(parts + split * kTokens * 128 + at, out[(at >> 7) * kPitch + (at & 127)]);
    __shared__ unsigned arrived;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) arrived = atomicInc(g.counters + tile, g.splits - 1);
    __syncthreads();
    if (arrived != static_cast<unsigned>(g.splits - 1)) return;
    __threadfence();
    for (int at = threadIdx.x; at < tokens * 128; at += kWarps * 32) {
      float x = 0.f;
      for (int s = 0; s < g.splits; ++s) x += __ldcg(parts + s * kTokens * 128 + at);
      write(g, tile, at, x);
    }
  }

  static __device__ __forceinline__ void write(const SmallArgs& g, int tile, int at, float x) {
    const int token = at >> 7, column = tile * 128 + (at & 127);
    if (column >= g.n) return;
    x *= g.scale;
    if (g.bias) x += widen<T>(g.bias[column]);
    g.c[static_cast<long long>(token) * g.n + column] = static_cast<u16>(pack2<T>(x, x));
  }
};

}  // namespace zoi::sm80

#ifdef ZOI_TOKENS
extern "C" __global__ void __launch_bounds__(256, 2) gemm_small(const zoi::sm80::SmallArgs args) {
  zoi::sm80::Small<zoi::sm80::ZOI_TYPE, ZOI_TOKENS, ZOI_CLUSTER>::run(args);
}
#endif
