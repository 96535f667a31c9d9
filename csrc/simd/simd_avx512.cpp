// The kernels for AVX-512 (F, BW, VL, DQ); empty where the compiler's target has no such thing.
#if defined(__AVX512F__) && defined(__AVX512BW__)
#include "simd/simd_kernels.h"

namespace embodied_mem {

extern const SimdKernels kAvx512Kernels;
const SimdKernels kAvx512Kernels = MakeKernels("avx512");

}  // namespace embodied_mem
#endif
