// Instructions of Ampere and later: mma.sync on 16-bit values, and moves between its fragments. Includes nothing.
//
// Fragments of mma m16n8k16, with g = lane / 4 and c = lane % 4: A rows g and g + 8, B column g, contraction 2c, 2c + 1 and
// 8 more; D rows g and g + 8, columns 2c and 2c + 1. Which element of memory a contraction index stands for is free as long
// as A and B agree, so a lane can take 8 neighbours in one 16-byte load as its share of two steps.
#pragma once

namespace zoi::sm80 {

using u32 = unsigned int;
using u16 = unsigned short;

struct Bf16 {};
struct F16 {};

template <class T>
__device__ __forceinline__ void mma(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1);
template <>
__device__ __forceinline__ void mma<Bf16>(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma<F16>(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

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

// Transposes an 8 x 8 matrix of 16-bit values that lies across the warp, two to a lane.
__device__ __forceinline__ u32 transpose(u32 x) {
  u32 r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(x));
  return r;
}

// 16 bytes that are read once: not kept in L1.
__device__ __forceinline__ uint4 stream(const void* p) {
  uint4 r;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "l"(p));
  return r;
}

__device__ __forceinline__ float exp2_fast(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

}  // namespace zoi::sm80
