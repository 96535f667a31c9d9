// How a scene's places stand to each other, in words: an addition of ours to the first text, from the boxes that the
// objects on a receptacle span.
//
// Left and right of a place are as seen by someone in front of it who looks at it: the only convention by which the
// kitchen's left counter is left of its right one. The front of the kitchen's row follows from these two; of anything
// else it is the long side that faces the middle of the scene, where a Stand is. The refrigerator has no box: it stands
// at that end of the row that the recorded traces reach it from, a family of scenes alike. The chair is not told.
#pragma once

#include <string>

#include "envs/eb_habitat/scene.h"

namespace embodied_mem::eb_habitat {

// A line per place that is known, the nearest of the others first; empty where fewer than two places are known.
std::string DescribeLayout(const Scene& scene);

}  // namespace embodied_mem::eb_habitat
