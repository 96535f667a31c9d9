// The kernels for the instruction set that the whole build is for (SSE2 on x86-64, NEON on ARM).
#include "simd/simd_kernels.h"

namespace embodied_mem {

extern const SimdKernels kBaselineKernels;
const SimdKernels kBaselineKernels = MakeKernels("baseline");

}  // namespace embodied_mem
