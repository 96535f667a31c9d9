// The native tests of EB-ALFRED, called by main.cpp.
#pragma once

namespace embodied_mem {

void TestAlfred();

}  // namespace embodied_mem
