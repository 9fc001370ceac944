// O = softmax(scale * q K^T) V for one query row a head: text generation, bound by reading K and V once.
//
// Layout: q, o [batch, heads, D] dense; K, V [batch, key, kv head, D] with any strides that are multiples of 16 bytes.
// Grid (kv head, split, batch), so that blocks that run together read neighbouring memory: a block takes a range of keys
// for all query heads of one kv head; its warps take 16 keys at a time through a ring of their own in shared memory, laid
// out so that a lane finds its share of the fragments of mma (keys by heads) in 16-byte words without bank conflicts. With
// several splits each leaves its part in scratch memory, and the block that comes last adds the parts in a fixed order.
//
// Specialised by: ZOI_TYPE, ZOI_D (64, 128), ZOI_GROUP (query heads of a kv head, at most 16), ZOI_WARPS, ZOI_STAGES (of a
// ring).
#pragma once
#include "../simd/sm80.cuh"

namespace zoi::sm80 {

struct DecodeArgs {
  const u16 *q, *k, *v;
  u16* o;
  float* parts;            // [pair][split][head][D + 2]
  unsigned* counters;      // [pair], zero before and after
  long long k_batch, k_key, k_head, v_batch, v_key, v_head;  // strides in elements
  int keys, splits, share;  // share: keys of a split
  float scale_log2;
};

template <class T, int D, int kGroup, int kWarps, int kStages>
struct Decode {
  static constexpr int kTiles = (kGroup + 7) / 8, kHeads = kTiles * 8;
  static constexpr int kRowChunks = D / 8, kHalf = 16 * D * 2;  // of a row and of 16 keys, in 16-byte chunks and bytes

  static __device__ __forceinline__ void copy(u32 to, const u16* from) {
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  }

  static __device__ __forceinline__ float minus_infinity() { return -__int_as_float(0x7f800000); }

  static __device__ void run(const DecodeArgs& a) {
    extern __shared__ float shared[];  // [warp][head][D + 2]
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, c = lane & 3;
    const int kv_head = blockIdx.x, split = blockIdx.y, batch = blockIdx.z;
    const int pair = batch * gridDim.x + kv_head;
    const u16* k = a.k + batch * a.k_batch + kv_head * a.k_head;
    const u16* v = a.v + batch * a.v_batch + kv_head * a.v_head;
    const u16* q = a.q + static_cast<long long>(pair) * kGroup * D;

    float out[kTiles][D / 16][4], top[kTiles][2], sum[kTiles][2];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int i = 0; i < D / 16; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) out[t][i][e] = 0.f;
      top[t][0] = top[t][1] = minus_infinity();
      sum[t][0] = sum[t][1] = 0.f;
    }

    const int begin = split * a.share, end = min(a.keys, begin + a.share), last = a.keys - 1;
    char* ring = reinterpret_cast<char*>(shared) + warp * kStages * 2 * kHalf;
    const auto fetch = [&](int first, int slot) {
      if (first < end) {
        const u32 to = static_cast<u32>(__cvta_generic_to_shared(ring + slot * 2 * kHalf));
#pragma unroll
        for (int i = 0; i < kRowChunks / 2; ++i) {
          const int at = i * 32 + lane, row = at / kRowChunks, chunk = at % kRowChunks, key = min(first + row, last);
          copy(to + (row * kRowChunks + (chunk ^ ((row & 1) * 4))) * 16, k + key * a.k_key + chunk * 8);
          copy(to + kHalf + (row * kRowChunks + (chunk ^ (((row >> 1) & 3) * 2))) * 16, v + key * a.v_key + chunk * 8);
        }
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
    };
    int key = begin + warp * 16, slot = 0;
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) fetch(key + i * kWarps * 16, i);

    uint4 query[kTiles][D / 32];
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int i = 0; i < D / 32; ++i)
        query[t][i] = t * 8 + g < kGroup
                          ? *reinterpret_cast<const uint4*>(q + (t * 8 + g) * D + i * 32 + c * 8)
                          : make_uint4(0, 0, 0, 0);

    for (; key < end; key += kWarps * 16, slot = (slot + 1) % kStages) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
      __syncwarp();
      fetch(key + (kStages - 1) * kWarps * 16, (slot + kStages - 1) % kStages);
      const char *k_tile = ring + slot * 2 * kHalf, *v_tile = k_tile + kHalf;
      uint4 kr[2][D / 32];
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int i = 0; i < D / 32; ++i)
          kr[h][i] = *reinterpret_cast<const uint4*>(k_tile + ((h * 8 + g) * kRowChunks + ((i * 4 + c) ^ ((g & 1) * 4))) * 16);
      u32 p[kTiles][2];
      float s[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        s[t][0] = s[t][1] = s[t][2] = s[t][3] = 0.f;
#pragma unroll
        for (int i = 0; i < D / 32; ++i) {
          mma<T>(s[t], kr[0][i].x, kr[1][i].x, kr[0][i].y, kr[1][i].y, query[t][i].x, query[t][i].y);
          mma<T>(s[t], kr[0][i].z, kr[1][i].z, kr[0][i].w, kr[1][i].w, query[t][i].z, query[t][i].w);
        }
      }
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        if (key + 16 > end) {
          if (key + g >= end) s[t][0] = s[t][1] = minus_infinity();
          if (key + g + 8 >= end) s[t][2] = s[t][3] = minus_infinity();
        }
        float factor[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float m = fmaxf(s[t][h], s[t][2 + h]);
          m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 4));
          m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 8));
          m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 16));
          m = fmaxf(m, top[t][h]);
          const float base = m == minus_infinity() ? 0.f : m * a.scale_log2;
          factor[h] = exp2_fast(top[t][h] * a.scale_log2 - base);
          top[t][h] = m;
          s[t][h] = exp2_fast(s[t][h] * a.scale_log2 - base);
          s[t][2 + h] = exp2_fast(s[t][2 + h] * a.scale_log2 - base);
          sum[t][h] = sum[t][h] * factor[h] + s[t][h] + s[t][2 + h];
        }
        p[t][0] = transpose(pack2<T>(s[t][0], s[t][1]));
        p[t][1] = transpose(pack2<T>(s[t][2], s[t][3]));
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
          out[t][i][0] *= factor[0];
          out[t][i][1] *= factor[1];
          out[t][i][2] *= factor[0];
          out[t][i][3] *= factor[1];
        }
      }
#pragma unroll
      for (int i = 0; i < D / 64; ++i) {
        u32 rows[4][4];
#pragma unroll
        for (int h = 0; h < 4; ++h) {
          const int row = (h >> 1) * 8 + c * 2 + (h & 1);
          const uint4 x = *reinterpret_cast<const uint4*>(v_tile + (row * kRowChunks + ((i * 8 + g) ^ (c * 2))) * 16);
          rows[h][0] = x.x, rows[h][1] = x.y, rows[h][2] = x.z, rows[h][3] = x.w;
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const u32 a0 = __byte_perm(rows[0][j], rows[1][j], 0x5410), a1 = __byte_perm(rows[0][j], rows[1][j], 0x7632);
          const u32 a2 = __byte_perm(rows[2][j], rows[3][j], 0x5410), a3 = __byte_perm(rows[2][j], rows[3][j], 0x7632);
#pragma unroll
          for (int t = 0; t < kTiles; ++t) mma<T>(out[t][i * 4 + j], a0, a1, a2, a3, p[t][0], p[t][1]);
        }
      }
    }

    // The warps' parts to shared memory, where the rings were: out, then top and sum.
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int step = 4; step < 32; step *= 2) sum[t][h] += __shfl_xor_sync(0xffffffffu, sum[t][h], step);
        float* to = shared + (warp * kHeads + t * 8 + c * 2 + h) * (D + 2);
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
          const int d = (i / 4) * 64 + g * 8 + (i % 4) * 2;
          to[d] = out[t][i][h];
          to[d + 1] = out[t][i][2 + h];
        }
        if (g == 0) {
          to[D] = top[t][h];
          to[D + 1] = sum[t][h];
        }
      }
    }
    __syncthreads();

    constexpr int kStep = kGroup * (D + 2), kNext = kHeads * (D + 2);
    float* parts = a.parts + static_cast<long long>(pair) * a.splits * kStep;
    for (int at = threadIdx.x; at < kGroup * D; at += kWarps * 32) {
      const int head = at / D, d = at - head * D;
      const float* from = shared + head * (D + 2);
      float m = minus_infinity(), l = 0.f, x = 0.f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) m = fmaxf(m, from[w * kNext + D]);
      const float base = m == minus_infinity() ? 0.f : m * a.scale_log2;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const float f = exp2_fast(from[w * kNext + D] * a.scale_log2 - base);
        l += f * from[w * kNext + D + 1];
        x += f * from[w * kNext + d];
      }
      if (a.splits == 1) {
        write(a, pair, at, x / l);
      } else {
        float* part = parts + split * kStep + head * (D + 2);
        __stcg(part + d, x);
        if (d == 0) {
          __stcg(part + D, m);
          __stcg(part + D + 1, l);
        }
      }
    }
    if (a.splits == 1) return;

    __shared__ unsigned arrived;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) arrived = atomicInc(a.counters + pair, a.splits - 1);
    __syncthreads();
    if (arrived != static_cast<unsigned>(a.splits - 1)) return;
    __threadfence();
    for (int at = threadIdx.x; at < kGroup * D; at += kWarps * 32) {
      const int head = at / D, d = at - head * D;
      const float* from = parts + head * (D + 2);
      float m = minus_infinity(), l = 0.f, x = 0.f;
#pragma unroll 8
      for (int s = 0; s < a.splits; ++s) m = fmaxf(m, __ldcg(from + s * kStep + D));
      const float base = m == minus_infinity() ? 0.f : m * a.scale_log2;
#pragma unroll 8
      for (int s = 0; s < a.splits; ++s) {
        const float f = exp2_fast(__ldcg(from + s * kStep + D) * a.scale_log2 - base);
        l += f * __ldcg(from + s * kStep + D + 1);
        x += f * __ldcg(from + s * kStep + d);
      }
      write(a, pair, at, x / l);
    }
  }

  static __device__ __forceinline__ void write(const DecodeArgs& a, int pair, int at, float x) {
    a.o[static_cast<long long>(pair) * kGroup * D + at] = static_cast<u16>(pack2<T>(x, x));
  }
};

}  // namespace zoi::sm80

#ifdef ZOI_GROUP
extern "C" __global__ void __launch_bounds__(ZOI_WARPS * 32, 1) attention_decode(const zoi::sm80::DecodeArgs args) {
  zoi::sm80::Decode<zoi::sm80::ZOI_TYPE, ZOI_D, ZOI_GROUP, ZOI_WARPS, ZOI_STAGES>::run(args);
}
#endif
