// The kernels for AVX-512 with VNNI; empty where the compiler's target has no such thing.
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#include "simd/simd_kernels.h"

namespace embodied_mem {

extern const SimdKernels kAvx512VnniKernels;
const SimdKernels kAvx512VnniKernels = MakeKernels("avx512vnni");

}  // namespace embodied_mem
#endif
