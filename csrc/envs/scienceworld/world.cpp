#include "envs/scienceworld/world.h"

#include <algorithm>
#include <utility>

#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {

Id World::RoomOf(Id id) const {
  for (std::size_t steps = 0; id != kNone && (*this)[id].kind != Kind::kRoom; id = (*this)[id].parent)
    if (++steps > things.size()) return kNone;
  return id;
}

bool World::InView(Id id) const {
  for (std::size_t steps = 0; id != kNone && steps < things.size(); ++steps) {
    id = (*this)[id].parent;
    if (id == room()) return true;
    if (id == kNone || ((*this)[id].kind != Kind::kAgent && !(*this)[id].open)) return false;
  }
  return false;
}

bool World::Within(Id id, Id outer) const {
  // What was put into something inside it is nowhere: its parents go round.
  for (std::size_t steps = 0; id != kNone && steps < things.size(); ++steps, id = (*this)[id].parent)
    if (id == outer) return true;
  return false;
}

void World::Move(Id id, Id to) {
  Thing& thing = (*this)[id];
  if (thing.parent != kNone) {
    std::vector<Id>& from = (*this)[thing.parent].inside;
    from.erase(std::remove(from.begin(), from.end(), id), from.end());
  }
  thing.parent = to;
  thing.slid = 0;
  if (to != kNone) (*this)[to].inside.push_back(id);
}

void World::Remove(Id id) {
  Disconnect(id);
  Move(id, kNone);
  Thing& thing = (*this)[id];
  thing.gone = true;
  if (thing.kind == Kind::kSubstance && thing.inside.empty() && thing.end == kNone && id != focus) spent.push_back(id);
}

Id World::Add(Thing thing, Id parent) {
  thing.parent = kNone;
  Id id = static_cast<Id>(things.size());
  if (spare.empty()) {
    things.push_back(std::move(thing));
  } else {
    id = spare.back();
    spare.pop_back();
    (*this)[id] = std::move(thing);
  }
  Move(id, parent);
  return id;
}

void World::AddEnds(Id id) {
  if ((*this)[id].end != kNone) return;
  const Kind kind = (*this)[id].kind;
  (*this)[id].end = static_cast<Id>(things.size());
  for (int terminal = 0; terminal < 2; ++terminal) {
    Thing end;
    end.kind = Kind::kTerminal;
    end.name = TerminalName(kind, terminal);
    end.parent = end.other = id;
    end.ticks = terminal;
    things.push_back(std::move(end));
  }
}

void World::LoseEnds(Id id) {
  if ((*this)[id].bare) return;
  (*this)[id].bare = true;
  AddEnds(id);
  const Id end = (*this)[id].end;
  for (const Id terminal : {end, end + 1}) Move(terminal, (*this)[id].parent);
}

bool World::Disconnect(Id id) {
  id = Face(id);
  bool any = false;
  for (Id& link : (*this)[id].link) {
    if (link == kNone) continue;
    (*this)[link / 2].link[link % 2] = kNone;
    link = kNone;
    any = true;
  }
  return any;
}

std::vector<Id> World::Sorted(Id id) const {
  std::vector<Id> found;
  for (const Id inner : (*this)[id].inside)
    if ((*this)[inner].kind != Kind::kTerminal) found.push_back(inner);
  std::stable_sort(found.begin(), found.end(), [&](Id a, Id b) { return (*this)[a].name < (*this)[b].name; });
  return found;
}

std::vector<Id> World::DoorsOf(Id room) const {
  std::vector<Id> found;
  for (const Id door : doors)
    if ((*this)[door].parent == room) found.push_back(door);
  return found;
}

std::vector<Id> World::SortedDoorsOf(Id room) const {
  std::vector<Id> found = DoorsOf(room);
  std::sort(found.begin(), found.end(),
            [&](Id a, Id b) { return (*this)[(*this)[a].leads].name < (*this)[(*this)[b].leads].name; });
  return found;
}

// The generator that Java documents.
void World::Seed(std::uint64_t seed) { chance = (seed ^ 0x5DEECE66DULL) & ((1ULL << 48) - 1); }

std::uint32_t World::Draw(int bits) {
  chance = (chance * 0x5DEECE66DULL + 0xBULL) & ((1ULL << 48) - 1);
  return static_cast<std::uint32_t>(chance >> (48 - bits));
}

std::size_t World::Pick(std::size_t count) {
  const std::uint64_t drawn = Draw(31);
  if ((count & (count - 1)) == 0) return static_cast<std::size_t>((count * drawn) >> 31);
  return static_cast<std::size_t>(drawn % count);
}

}  // namespace embodied_mem::scienceworld
