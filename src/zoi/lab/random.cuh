// Fills an array with normal random numbers of its dtype: the same seed gives the same bits on every GPU.
__device__ unsigned mix(unsigned long long x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  x ^= x >> 33;
  return static_cast<unsigned>(x);
}

// dtype: 0 bf16, 1 f16, 2 f32, 3 e4m3, 4 i8 (values spread * normal, rounded and saturated).
extern "C" __global__ void fill_normal(void* out, unsigned long long count, unsigned long long seed, float spread, int dtype) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const float a = (mix(2 * i + 1 + seed * 0x9e3779b97f4a7c15ull) + 1.0f) * 2.3283064e-10f;
    const float b = mix(2 * i + seed * 0x9e3779b97f4a7c15ull) * 2.3283064e-10f;
    const float x = spread * sqrtf(-2.0f * logf(fminf(a, 1.0f))) * cosf(6.2831853f * b);
    if (dtype == 0) {
      unsigned short r;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
      static_cast<unsigned short*>(out)[i] = r;
    } else if (dtype == 1) {
      unsigned short r;
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
      static_cast<unsigned short*>(out)[i] = r;
    } else if (dtype == 2) {
      static_cast<float*>(out)[i] = x;
#if __CUDA_ARCH__ >= 890
    } else if (dtype == 3) {
      unsigned short r;
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(x));
      static_cast<unsigned char*>(out)[i] = static_cast<unsigned char>(r);
#endif
    } else {
      static_cast<signed char*>(out)[i] = static_cast<signed char>(fminf(fmaxf(rintf(x), -127.0f), 127.0f));
    }
  }
}
