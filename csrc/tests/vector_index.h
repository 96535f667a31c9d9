// The native tests of the vector index, called by main.cpp.
#pragma once

namespace embodied_mem {

void TestVectorIndex();

}  // namespace embodied_mem
