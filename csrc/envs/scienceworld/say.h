// How the world is put into words.
#pragma once

#include <string>
#include <vector>

#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

// What a thing looks like in a list, or with `close` when it is looked at itself.
std::string Describe(const World& world, Id id, bool close = false);
// What its inside looks like, an answer of its own.
std::string DescribeInside(const World& world, Id id);
std::string DescribeRoom(const World& world, Id room);
std::string DescribeInventory(const World& world);
// All names that mean the thing; doors and drains have theirs from where they are. With `begin`, a small letter, those
// that begin with another one are left out where that is seen at once.
std::vector<std::string> Names(const World& world, Id id, char begin = 0);
// With the stage of an animal, the surface of a plane, what fire did.
std::string DisplayName(const World& world, Id id);
const char* StageName(const Thing& thing);
// "door between bathroom and kitchen", also of a drain.
std::string DoorName(const World& world, Id id);
// The name that questions and the focus use.
std::string ActionName(const World& world, Id id);
// "(in wood cup, in art studio)".
std::string Where(const World& world, Id id);

}  // namespace embodied_mem::scienceworld
