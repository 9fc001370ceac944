// O = softmax(scale * Q K^T) V per head, and the logarithm of the sum of exponentials, on Hopper.
//
// Layout: Q, K, V as tensor maps over (64 columns, row, block of 64 columns, head, batch), so any strides; O with any
// strides that are multiples of 8 elements; 16-bit.
// Query heads share key heads in groups (GQA). Rows and keys past the ends are zero-filled, masked and clipped.
// Causal: query i sees keys up to i + seq_k - seq_q.
//
// One warp copies tiles; each of the consumer warpgroups owns 64 rows of queries. A consumer issues S = Q K^T of the next
// block together with O += P V of this one, and takes turns with the others, so that the exponentials of one warpgroup run
// under the products of another; the first S of the next tile runs under the storing of this one. Where memory allows, the next tile's queries arrive while this one is worked on. Tiles go to blocks in a fixed order, longest first, forth and back, so that all finish
// together and every run gives the same bits.
//
// Specialised by: ZOI_TYPE, ZOI_D, ZOI_ROWS (of queries), ZOI_KEYS (of a block), ZOI_CAUSAL.
#pragma once
#include "../simd/sm90.cuh"

namespace zoi::sm90 {

struct AttentionArgs {
  int seq_q, seq_k, heads, group;
  int row_blocks, tiles, section, pairs;  // pairs = batch * heads; `section` pairs are worked on at a time
  float scale_log2;
  float* lse;
  u16* out;
  long long out_batch, out_row, out_head;  // strides in elements
};

template <class T, int D, int kRows, int kKeys, bool kCausal>
struct Attention {
  static constexpr int kGroups = kRows / 64, kStages = D == 64 ? 3 : 2, kThreads = (kGroups + 1) * 128;
  static constexpr int kQBytes = 64 * D * 2, kTile = kKeys * D * 2;
  static constexpr int kBuffers = 2 * kGroups * kQBytes + 2 * kStages * kTile + 2048 <= 232448 ? 2 : 1;  // of queries
  static constexpr int kRegsUp = kGroups == 2 ? 240 : 160, kRegsDown = kGroups == 2 ? 24 : 32;

  struct Barriers {
    u64 q_full[kBuffers][kGroups], q_empty[kBuffers][kGroups];
    u64 k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
  };

  struct Tile {
    int row_block, head, batch, blocks;
  };

  static __device__ __forceinline__ bool tile_at(const AttentionArgs& a, int turn, Tile& tile) {
    const int grid = gridDim.x, me = blockIdx.x;
    const int t = turn * grid + (turn & 1 ? grid - 1 - me : me);
    if (t >= a.tiles) return false;
    const int per = a.section * a.row_blocks, s = t / per, r = t - s * per;
    const int wide = min(a.section, a.pairs - s * a.section);
    const int row = r / wide, pair = s * a.section + r - row * wide;
    tile.row_block = a.row_blocks - 1 - row;
    tile.batch = pair / a.heads;
    tile.head = pair - tile.batch * a.heads;
    int keys = a.seq_k;
    if (kCausal) keys = max(0, min(keys, (tile.row_block + 1) * kRows + a.seq_k - a.seq_q));
    tile.blocks = max(1, (keys + kKeys - 1) / kKeys);  // rows that see nothing get one block, all masked
    return true;
  }

  static __device__ __forceinline__ void produce(const TensorMap* q_map, const TensorMap* k_map, const TensorMap* v_map,
                                                 const AttentionArgs& a, char* q, char* k, char* v, Barriers& bar) {
    Ring<kStages> ring;
    Ring<kBuffers> q_ring;
    Tile t;
    for (int turn = 0; tile_at(a, turn, t); ++turn) {
      const int kv_head = t.head / a.group;
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        u64* full = &bar.q_full[q_ring.slot][g];
        wait(&bar.q_empty[q_ring.slot][g], q_ring.parity ^ 1);
        expect(full, kQBytes);
        load_5d(q + (q_ring.slot * kGroups + g) * kQBytes, q_map, full, 0, t.row_block * kRows + g * 64, 0, t.head, t.batch);
      }
      q_ring.next();
      for (int j = t.blocks - 1; j >= 0; --j) {
        wait(&bar.k_empty[ring.slot], ring.parity ^ 1);
        expect(&bar.k_full[ring.slot], kTile);
        load_5d(k + ring.slot * kTile, k_map, &bar.k_full[ring.slot], 0, j * kKeys, 0, kv_head, t.batch);
        wait(&bar.v_empty[ring.slot], ring.parity ^ 1);
        expect(&bar.v_full[ring.slot], kTile);
        load_5d(v + ring.slot * kTile, v_map, &bar.v_full[ring.slot], 0, j * kKeys, 0, kv_head, t.batch);
        ring.next();
      }
    }
  }

  static __device__ __forceinline__ void scores(float (&s)[kKeys / 2], const char* q, const char* k) {
    const u64 a = tile_k(q), b = tile_k(k);
    hold(s);
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
      Wgmma<T, kKeys, 0>::ss(s, a + (d / 4) * (64 * 128 >> 4) + (d % 4) * 2, b + (d / 4) * (kKeys * 128 >> 4) + (d % 4) * 2,
                             d > 0);
    wgmma_commit();
  }

  static __device__ __forceinline__ void values(float (&o)[D / 2], u32 (&p)[kKeys / 4], const char* v, int accumulate) {
    const u64 b = tile_mn(v, kKeys * 128);
    hold(o);
    hold(p);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i)
      Wgmma<T, D, 1>::rs(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], b + i * (16 * 128 >> 4),
                         accumulate | (i > 0));
    wgmma_commit();
  }

  // Sets the scores of keys that a row must not see to minus infinity; `first` is the block's first key.
  static __device__ __forceinline__ void mask(float (&s)[kKeys / 2], int first, int row, int lane, const AttentionArgs& a) {
    const int end0 = kCausal ? min(a.seq_k, row + a.seq_k - a.seq_q + 1) : a.seq_k;
    const int end1 = kCausal ? min(a.seq_k, row + 8 + a.seq_k - a.seq_q + 1) : a.seq_k;
    const int limit0 = end0 - first - (lane & 3) * 2, limit1 = end1 - first - (lane & 3) * 2;
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (i * 8 + e >= limit0) s[4 * i + e] = -__int_as_float(0x7f800000);
        if (i * 8 + e >= limit1) s[4 * i + 2 + e] = -__int_as_float(0x7f800000);
      }
    }
  }

  // Turns scores into exponentials; updates the rows' maxima and this lane's part of their sums; gives what the earlier
  // results must be multiplied by.
  static __device__ __forceinline__ void exponentials(float (&s)[kKeys / 2], float (&top)[2], float (&sum)[2],
                                                      float (&factor)[2], float scale) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float m0 = top[r], m1 = s[2 * r];
#pragma unroll
      for (int i = 0; i < kKeys / 8; ++i) {
        m0 = fmaxf(m0, s[4 * i + 2 * r]);
        m1 = fmaxf(m1, s[4 * i + 2 * r + 1]);
      }
      m0 = fmaxf(m0, m1);
      m0 = fmaxf(m0, __shfl_xor_sync(0xffffffffu, m0, 1));
      m0 = fmaxf(m0, __shfl_xor_sync(0xffffffffu, m0, 2));
      const float base = m0 == -__int_as_float(0x7f800000) ? 0.f : m0 * scale;
      factor[r] = exp2_fast(top[r] * scale - base);
      top[r] = m0;
      float t0 = 0.f, t1 = 0.f;
#pragma unroll
      for (int i = 0; i < kKeys / 8; ++i) {
        const float e0 = exp2_fast(s[4 * i + 2 * r] * scale - base);
        const float e1 = exp2_fast(s[4 * i + 2 * r + 1] * scale - base);
        s[4 * i + 2 * r] = e0;
        s[4 * i + 2 * r + 1] = e1;
        t0 += e0;
        t1 += e1;
      }
      sum[r] = sum[r] * factor[r] + (t0 + t1);
    }
  }

  static __device__ __forceinline__ void pack(u32 (&p)[kKeys / 4], const float (&s)[kKeys / 2]) {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) p[i] = pack2<T>(s[2 * i], s[2 * i + 1]);
  }

  // Four lanes hold a row of 8 columns together; they trade until each has 8 columns of its own, 16 bytes to store.
  static __device__ __forceinline__ void store(const float (&o)[D / 2], const float (&inverse)[2], const AttentionArgs& a,
                                               const Tile& t, int row, int lane) {
    const bool odd = lane & 1, high = lane & 2;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      u16* to = a.out + t.batch * a.out_batch + (row + 8 * r) * a.out_row + t.head * a.out_head + (lane & 3) * 8;
#pragma unroll
      for (int m = 0; m < D / 32; ++m) {
        u32 x[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          x[i] = pack2<T>(o[16 * m + 4 * i + 2 * r] * inverse[r], o[16 * m + 4 * i + 2 * r + 1] * inverse[r]);
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
          const u32 got = __shfl_xor_sync(0xffffffffu, odd ? x[i] : x[i + 1], 1);
          x[i] = odd ? got : x[i];
          x[i + 1] = odd ? x[i + 1] : got;
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const u32 got = __shfl_xor_sync(0xffffffffu, high ? x[i] : x[i + 2], 2);
          x[i] = high ? got : x[i];
          x[i + 2] = high ? x[i + 2] : got;
        }
        if (row + 8 * r < a.seq_q) *reinterpret_cast<uint4*>(to + m * 32) = make_uint4(x[0], x[1], x[2], x[3]);
      }
    }
  }

  static __device__ __forceinline__ void consume(const AttentionArgs& a, int group, const char* queries, const char* k,
                                                 const char* v, Barriers& bar) {
    const int thread = threadIdx.x & 127, warp = thread >> 5, lane = thread & 31;
    const int my_turn = 1 + group, next_turn = 1 + (group + 1) % kGroups;
    Ring<kStages> k_ring, v_ring;
    Ring<kBuffers> q_ring;
    Tile t;
    float s[kKeys / 2], o[D / 2];
    u32 p[kKeys / 4];
    if (group == kGroups - 1) group_arrive(1, 256);
    // After the last tile this multiplies what is left in shared memory, and nothing reads the product: wgmma in a branch
    // would make the compiler wait for every one.
    bool more = tile_at(a, 0, t);
    const auto first_scores = [&] {
      if (more) {
        wait(&bar.q_full[q_ring.slot][group], q_ring.parity);
        wait(&bar.k_full[k_ring.slot], k_ring.parity);
      }
      scores(s, queries + (q_ring.slot * kGroups + group) * kQBytes, k + k_ring.slot * kTile);
    };
    first_scores();
    wgmma_wait<0>();
    hold(s);
    for (int turn = 1; more; ++turn) {
      const int first_row = t.row_block * kRows + group * 64, row = first_row + warp * 16 + (lane >> 2);
      // Blocks from this one on reach past a key that some row of this warpgroup must not see.
      int clear = a.seq_k / kKeys;
      if (kCausal) clear = min(clear, max(0, first_row + a.seq_k - a.seq_q + 1) / kKeys);
      float top[2] = {-__int_as_float(0x7f800000), -__int_as_float(0x7f800000)}, sum[2] = {0.f, 0.f}, factor[2];
      const char* q = queries + (q_ring.slot * kGroups + group) * kQBytes;
      u64* q_empty = &bar.q_empty[q_ring.slot][group];
      q_ring.next();
      if (lane == 0) arrive(&bar.k_empty[k_ring.slot]);
      k_ring.next();
      if (t.blocks - 1 >= clear) mask(s, (t.blocks - 1) * kKeys, row, lane, a);
      exponentials(s, top, sum, factor, a.scale_log2);
      pack(p, s);
      for (int j = t.blocks - 2; j >= 0; --j) {
        wait(&bar.k_full[k_ring.slot], k_ring.parity);
        group_sync(my_turn, 256);
        scores(s, q, k + k_ring.slot * kTile);
        wait(&bar.v_full[v_ring.slot], v_ring.parity);
        values(o, p, v + v_ring.slot * kTile, j < t.blocks - 2);
        group_arrive(next_turn, 256);
        wgmma_wait<1>();
        hold(s);
        if (lane == 0) arrive(&bar.k_empty[k_ring.slot]);
        k_ring.next();
        if (j >= clear) mask(s, j * kKeys, row, lane, a);
        exponentials(s, top, sum, factor, a.scale_log2);
        wgmma_wait<0>();
        hold(o);
        if (lane == 0) arrive(&bar.v_empty[v_ring.slot]);
        v_ring.next();
#pragma unroll
        for (int i = 0; i < D / 8; ++i) {
          o[4 * i] *= factor[0];
          o[4 * i + 1] *= factor[0];
          o[4 * i + 2] *= factor[1];
          o[4 * i + 3] *= factor[1];
        }
        pack(p, s);
      }
      if (lane == 0) arrive(q_empty);
      wait(&bar.v_full[v_ring.slot], v_ring.parity);
      values(o, p, v + v_ring.slot * kTile, t.blocks > 1);
      const Tile done = t;
      more = tile_at(a, turn, t);
      if (kBuffers == 2) first_scores();
      wgmma_wait<kBuffers == 2 ? 1 : 0>();
      hold(o);
      if (lane == 0) arrive(&bar.v_empty[v_ring.slot]);
      v_ring.next();
      float inverse[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
        inverse[r] = sum[r] == 0.f ? 0.f : 1.f / sum[r];
        const int at = row + 8 * r;
        if (a.lse && (lane & 3) == 0 && at < a.seq_q)
          a.lse[(static_cast<long long>(done.batch) * a.heads + done.head) * a.seq_q + at] =
              sum[r] == 0.f ? -__int_as_float(0x7f800000)
                            : (top[r] * a.scale_log2 + __log2f(sum[r])) * 0.6931471805599453f;
      }
      store(o, inverse, a, done, row, lane);
      if (kBuffers == 1) first_scores();
      wgmma_wait<0>();
      hold(s);
    }
  }

  static __device__ __forceinline__ void run(const TensorMap* q_map, const TensorMap* k_map, const TensorMap* v_map,
                                             const AttentionArgs& a) {
    extern __shared__ char raw[];
    char* base = raw + (1024 - (smem(raw) & 1023)) % 1024;
    char *q = base, *k = q + kBuffers * kGroups * kQBytes, *v = k + kStages * kTile;
    Barriers& bar = *reinterpret_cast<Barriers*>(v + kStages * kTile);
    const int role = threadIdx.x >> 7;
    if (threadIdx.x == 0) {
      for (int b = 0; b < kBuffers; ++b) {
        for (int g = 0; g < kGroups; ++g) {
          barrier_init(&bar.q_full[b][g], 1);
          barrier_init(&bar.q_empty[b][g], 4);
        }
      }
      for (int s = 0; s < kStages; ++s) {
        barrier_init(&bar.k_full[s], 1);
        barrier_init(&bar.v_full[s], 1);
        barrier_init(&bar.k_empty[s], 4 * kGroups);
        barrier_init(&bar.v_empty[s], 4 * kGroups);
      }
      barrier_init_fence();
      prefetch_map(q_map);
      prefetch_map(k_map);
      prefetch_map(v_map);
    }
    __syncthreads();
    if (role == 0) {
      registers_down<kRegsDown>();
      if (threadIdx.x == 0) produce(q_map, k_map, v_map, a, q, k, v, bar);
    } else {
      registers_up<kRegsUp>();
      consume(a, role - 1, q, k, v, bar);
    }
  }
};

}  // namespace zoi::sm90

#ifdef ZOI_D
using ZoiAttention = zoi::sm90::Attention<zoi::sm90::ZOI_TYPE, ZOI_D, ZOI_ROWS, ZOI_KEYS, ZOI_CAUSAL>;
extern "C" __global__ void __launch_bounds__(ZoiAttention::kThreads, 1)
    attention_forward(const __grid_constant__ zoi::sm90::TensorMap q, const __grid_constant__ zoi::sm90::TensorMap k,
                      const __grid_constant__ zoi::sm90::TensorMap v, const zoi::sm90::AttentionArgs args) {
  ZoiAttention::run(&q, &k, &v, args);
}
#endif
