// C = act(scale * A B^T + bias): A [M, K] and B [N, K], both contiguous along K; C [M, N] in 16 bits.
//
// Types: bf16 or f16 (products in f32), or e4m3 (products in f32, C in bf16). Any M, N, K whose rows are multiples of 16
// bytes: what lies outside is zero-filled and clipped by the tensor maps.
//
// A persistent block makes tiles of 128 x ZOI_N: one warp copies, two warpgroups of 64 rows multiply. With ZOI_CLUSTER 2
// two blocks that lie below each other share B: each loads half and sends it to both. C leaves through shared memory in
// slices of 64 rows by 64 columns, while the copies of the next tile run.
//
// Specialised by: ZOI_TYPE, ZOI_N (tile columns), ZOI_STAGES, ZOI_CLUSTER (1, 2), ZOI_ACTIVATION (0 none, 1 relu, 2 gelu,
// 3 silu).
#pragma once
#include "../simd/sm90.cuh"

namespace zoi::sm90 {

struct GemmArgs {
  int m, n, k;
  int row_tiles, column_tiles;  // of clusters: a row tile is 128 * cluster rows
  int band;                     // row tiles worked on together, for reuse in L2
  float scale;
  const u16* bias;  // one for each column, in C's type, or null
};

template <class T>
struct Element {
  static constexpr int kBytes = 2;
  using Out = T;
};
template <>
struct Element<E4m3> {
  static constexpr int kBytes = 1;
  using Out = Bf16;
};

template <class T>
__device__ __forceinline__ float widen(u16 bits);
template <>
__device__ __forceinline__ float widen<Bf16>(u16 bits) {
  return __int_as_float(static_cast<int>(bits) << 16);
}
template <>
__device__ __forceinline__ float widen<F16>(u16 bits) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));
  return r;
}

template <int kActivation>
__device__ __forceinline__ float activate(float x) {
  if (kActivation == 1) return fmaxf(x, 0.f) + (x != x ? x : 0.f);
  if (kActivation == 2) return 0.5f * x * (1.f + erff(x * 0.7071067811865476f));
  if (kActivation == 3) return x / (1.f + exp2_fast(-1.4426950408889634f * x));
  return x;
}

template <class T, int kN, int kStages, int kCluster, int kActivation>
struct Gemm {
  using Out = typename Element<T>::Out;
  static constexpr int kThreads = 384, kK = 128 / Element<T>::kBytes;
  static constexpr int kABytes = 128 * 128, kBBytes = kN * 128, kBShare = kN / kCluster;
  static constexpr int kSlices = kN % 128 == 0 && kN > 64 ? 2 : 1, kOutBytes = kSlices * 64 * 128;
  static constexpr int kShared = kStages * (kABytes + kBBytes) + 2 * kOutBytes + 2048;

  struct Barriers {
    u64 full[kStages], empty[kStages];
  };

  static __device__ __forceinline__ bool tile_at(const GemmArgs& g, int t, int& row, int& column) {
    if (t >= g.row_tiles * g.column_tiles) return false;
    const int per = g.band * g.column_tiles, b = t / per, r = t - b * per;
    const int high = min(g.band, g.row_tiles - b * g.band);
    column = r / high;
    row = b * g.band + r - column * high;
    return true;
  }

  static __device__ __forceinline__ void produce(const TensorMap* a_map, const TensorMap* b_map, const GemmArgs& g, char* a,
                                                 char* b, Barriers& bar, int rank, int first, int step) {
    Ring<kStages> ring;
    int row, column;
    const int steps = (g.k + kK - 1) / kK;
    for (int t = first; tile_at(g, t, row, column); t += step) {
      const int y = (row * kCluster + rank) * 128, x = column * kN + rank * kBShare;
      for (int i = 0; i < steps; ++i) {
        wait(&bar.empty[ring.slot], ring.parity ^ 1);
        expect(&bar.full[ring.slot], kABytes + kBBytes);
        load_2d(a + ring.slot * kABytes, a_map, &bar.full[ring.slot], i * kK, y);
        char* to = b + ring.slot * kBBytes + rank * kBShare * 128;
        if (kCluster > 1)
          load_2d_shared(to, b_map, &bar.full[ring.slot], i * kK, x, (1 << kCluster) - 1);
        else
          load_2d(to, b_map, &bar.full[ring.slot], i * kK, x);
        ring.next();
      }
    }
  }

  static __device__ __forceinline__ void release(u64* empty, int lane) {
    if (kCluster > 1) {
      if (lane < kCluster) arrive_at(empty, lane);
    } else if (lane == 0) {
      arrive(empty);
    }
  }

  static __device__ __forceinline__ void consume(const TensorMap* c_map, const GemmArgs& g, const char* a, const char* b,
                                                 char* out, Barriers& bar, int group, int rank, int first, int step) {
    const int thread = threadIdx.x & 127, warp = thread >> 5, lane = thread & 31;
    Ring<kStages> ring;
    int row, column;
    const int steps = (g.k + kK - 1) / kK;
    float acc[kN / 2];
    for (int t = first; tile_at(g, t, row, column); t += step) {
      u64* last = nullptr;
      for (int i = 0; i < steps; ++i) {
        wait(&bar.full[ring.slot], ring.parity);
        const u64 da = tile_k(a + ring.slot * kABytes + group * 64 * 128), db = tile_k(b + ring.slot * kBBytes);
        hold(acc);
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < 4; ++s) Wgmma<T, kN, 0>::ss(acc, da + s * 2, db + s * 2, i > 0 || s > 0);
        wgmma_commit();
        wgmma_wait<1>();
        hold(acc);
        if (last) release(last, lane);
        last = &bar.empty[ring.slot];
        ring.next();
      }
      wgmma_wait<0>();
      hold(acc);
      if (last) release(last, lane);

      const int y = (row * kCluster + rank) * 128 + group * 64, x = column * kN;
      const u32 base = smem(out) + (warp * 16 + (lane & 15)) * 128;
#pragma unroll
      for (int part = 0; part < kN / 64; part += kSlices) {
        if (thread == 0) store_wait_read();
        group_sync(1 + group, 128);
#pragma unroll
        for (int i = part * 4; i < (part + kSlices) * 4; ++i) {
          float v[8];
          const int at = x + i * 16 + (lane & 3) * 2;
#pragma unroll
          for (int e = 0; e < 8; ++e) {
            v[e] = acc[8 * i + e] * g.scale;
            const int c = at + (e & 1) + (e & 4) * 2;
            if (g.bias && c < g.n) v[e] += widen<Out>(g.bias[c]);
            v[e] = activate<kActivation>(v[e]);
          }
          const u32 chunk = ((i % 4) * 2 + (lane >> 4)) ^ (lane & 7);
          store_matrix(base + (i / 4 - part) * (64 * 128) + chunk * 16, pack2<Out>(v[0], v[1]), pack2<Out>(v[2], v[3]),
                       pack2<Out>(v[4], v[5]), pack2<Out>(v[6], v[7]));
        }
        async_fence();
        group_sync(1 + group, 128);
        if (thread == 0) {
#pragma unroll
          for (int s = 0; s < kSlices; ++s) store_2d(c_map, out + s * (64 * 128), x + (part + s) * 64, y);
          store_commit();
        }
      }
    }
    if (thread == 0) store_wait();
  }

  static __device__ __forceinline__ void run(const TensorMap* a_map, const TensorMap* b_map, const TensorMap* c_map,
                                             const GemmArgs& g) {
    extern __shared__ char raw[];
    char* base = raw + (1024 - (smem(raw) & 1023)) % 1024;
    char *a = base, *b = a + kStages * kABytes, *out = b + kStages * kBBytes;
    Barriers& bar = *reinterpret_cast<Barriers*>(out + 2 * kOutBytes);
    const int role = threadIdx.x >> 7, rank = kCluster > 1 ? cluster_rank() : 0;
    const int first = blockIdx.x / kCluster, step = gridDim.x / kCluster;
    if (threadIdx.x == 0) {
      for (int s = 0; s < kStages; ++s) {
        barrier_init(&bar.full[s], 1);
        barrier_init(&bar.empty[s], 8 * kCluster);
      }
      barrier_init_fence();
      prefetch_map(a_map);
      prefetch_map(b_map);
      prefetch_map(c_map);
    }
    __syncthreads();
    if (kCluster > 1) cluster_sync();
    if (role == 0) {
      registers_down<40>();
      if (threadIdx.x == 0) produce(a_map, b_map, g, a, b, bar, rank, first, step);
    } else {
      registers_up<232>();
      consume(c_map, g, a, b, out + (role - 1) * kOutBytes, bar, role - 1, rank, first, step);
    }
    // A block must outlive what its neighbour still sends to it.
    if (kCluster > 1) {
      __syncwarp();
      cluster_sync();
    }
  }
};

}  // namespace zoi::sm90

#ifdef ZOI_N
using ZoiGemm = zoi::sm90::Gemm<zoi::sm90::ZOI_TYPE, ZOI_N, ZOI_STAGES, ZOI_CLUSTER, ZOI_ACTIVATION>;
extern "C" __global__ void __launch_bounds__(ZoiGemm::kThreads, 1)
    gemm(const __grid_constant__ zoi::sm90::TensorMap a, const __grid_constant__ zoi::sm90::TensorMap b,
         const __grid_constant__ zoi::sm90::TensorMap c, const zoi::sm90::GemmArgs args) {
  ZoiGemm::run(&a, &b, &c, args);
}
#endif
