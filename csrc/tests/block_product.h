// The native test of the product of rows with a large matrix, called by main.cpp.
#pragma once

namespace embodied_mem {

void TestBlockProduct();

}  // namespace embodied_mem
