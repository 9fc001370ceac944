// How one source serves every vector ISA.
//
// A family writes its vector kernels once, in its `simd.h`, inside `namespace zoi::ZOI_ISA`, over the names below. Its
// variant file picks the ISA and instantiates them:
//
//     // x86_avx512.cc
//     #include "../simd/avx512.h"
//     #include "simd.h"
//
// CMake derives the compile flags from the file name. Everything is static and always inlined into the ISA's own
// namespace, so that no function compiled for one ISA can be the copy that another ISA's caller is linked to. A test
// reads the objects' symbols to keep it so; use no std:: function template in a variant.
//
//   V, VI, M        kWidth floats, kWidth int32, a mask; kRegisters says how many V a kernel may keep
//   first(n)        the mask of the first n lanes
//   load, store     unaligned; with a mask, lanes outside it are neither read nor written (and load as 0)
//   store_first(p, v, n)   the first n lanes, by whatever is fastest on the ISA
//   fma, fnma       a*b + c, c - a*b
//   max_second, min_second   if either is NaN the SECOND operand is returned, as the instruction does
//   select(m, yes, no), less, less_equal, equal, unordered (either is NaN)
//   any(m), both(m, n), either(m, n)
//   ldexp(a, n)     a * 2^n for |a| in [1/2, 2) or NaN and an integral n in [-252, 252], right for denormal results;
//                   kLdexpIsCheap: it is one instruction
//   round           to the nearest integer, ties to even
//   shift_left<n>, shift_right<n>   of int32 lanes, the right one arithmetic
//
// simd/math.h, on top of them: exp, log, tanh, sigmoid, erf, ... and activate<act>(v, p0, p1).
#pragma once
