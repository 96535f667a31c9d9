// The kernels for AVX2 with FMA; empty where the compiler's target has no such thing.
#if defined(__AVX2__) && defined(__FMA__)
#include "simd/simd_kernels.h"

namespace embodied_mem {

extern const SimdKernels kAvx2Kernels;
const SimdKernels kAvx2Kernels = MakeKernels("avx2");

}  // namespace embodied_mem
#endif
