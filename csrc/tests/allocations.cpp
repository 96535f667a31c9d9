// A file of its own, so that the compiler does not see through new and delete where they are used.
#include "tests/allocations.h"

#include <cstdlib>
#include <new>

namespace embodied_mem::testing {

thread_local long allocations_left = -1;
thread_local std::size_t allocated_bytes = 0;

}  // namespace embodied_mem::testing

void* operator new(std::size_t size) {
  using namespace embodied_mem::testing;
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  allocated_bytes += size;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
