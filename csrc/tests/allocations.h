// The native tests' own operator new: counts bytes, and fails when a test says so. Per thread.
#pragma once

#include <cstddef>

namespace embodied_mem::testing {

extern thread_local long allocations_left;  // before the next one throws std::bad_alloc; below 0: none does
extern thread_local std::size_t allocated_bytes;

}  // namespace embodied_mem::testing
