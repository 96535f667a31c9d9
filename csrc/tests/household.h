// The native tests of the household world, called by main.cpp.
#pragma once

namespace embodied_mem {

void TestHousehold();

}  // namespace embodied_mem
