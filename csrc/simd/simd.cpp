#include "simd/simd.h"

#include <vector>

namespace embodied_mem {

extern const SimdKernels kBaselineKernels;
#if defined(__x86_64__)
extern const SimdKernels kAvx2Kernels;
extern const SimdKernels kAvx512Kernels;
#endif

namespace {

const std::vector<const SimdKernels*>& Supported() {
  static const std::vector<const SimdKernels*> kernels = [] {
    std::vector<const SimdKernels*> found;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (avx2 && avx512) found.push_back(&kAvx512Kernels);
    if (avx2) found.push_back(&kAvx2Kernels);
#endif
    found.push_back(&kBaselineKernels);
    return found;
  }();
  return kernels;
}

}  // namespace

std::size_t NumKernels() { return Supported().size(); }
const SimdKernels& Kernels(std::size_t i) { return *Supported().at(i); }

}  // namespace embodied_mem
