#pragma once

namespace embodied_mem {

// The EB-Habitat world: a task played to its end, refusals, goal trees, reach by distance, bad and mutated files.
void TestHabitat();

}  // namespace embodied_mem
