#include "envs/scienceworld/circuits.h"

#include "envs/scienceworld/parse.h"
#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {
namespace {

// Which terminal of what is meant; -1 for a thing, whose first free one is.
int NamedEnd(const World& world, Id* id) {
  const Thing& thing = world[*id];
  if (thing.kind != Kind::kTerminal) return -1;
  *id = thing.other;
  return thing.ticks;
}

}  // namespace

std::string Connect(World* world, Id first, Id second) {
  const bool itself = first == second;
  int ends[2] = {-1, -1};
  const int named[2] = {NamedEnd(*world, &first), NamedEnd(*world, &second)};
  first = world->Face(first), second = world->Face(second);
  for (int k = 0; k < 2; ++k) {
    const Kind kind = (*world)[k == 0 ? first : second].kind;
    if (named[k] >= 0 || !ShowsEnds(kind)) continue;
    return std::string("Connections must specify specific points of contact on ") +
           (HasPoles(kind) ? "polarized electrical components (e.g. anode, cathode)"
                           : "unpolarized electrical components (e.g. terminal 1, terminal 2)");
  }
  if (itself) return "Something can't be connected to itself.";
  for (int k = 0; k < 2; ++k) {
    const Thing& thing = (*world)[k == 0 ? first : second];
    for (int t = 1; t >= 0; --t)
      if (thing.link[t] == kNone && (named[k] < 0 || named[k] == t)) ends[k] = t;
    if (ends[k] < 0)
      return (named[k] < 0 ? "" : std::string(TerminalName(thing.kind, named[k])) + " on ") + thing.name +
             " is already connected, and must be disconnected before it can be connected to something else";
  }
  (*world)[first].link[ends[0]] = second * 2 + ends[1];
  (*world)[second].link[ends[1]] = first * 2 + ends[0];
  return std::string(TerminalName((*world)[first].kind, ends[0])) + " on " + (*world)[first].name +
         " is now connected to " + TerminalName((*world)[second].kind, ends[1]) + " on " + (*world)[second].name;
}

std::string Disconnect(World* world, Id id) {
  const Thing& thing = (*world)[id];
  if (thing.kind == Kind::kTerminal)
    return "You must disconnect entire objects (such as " + (*world)[thing.other].name +
           ") instead of just single terminals";
  world->Disconnect(id);
  return thing.name + " has been disconnected";
}

void ShowEnds(World* world, std::string_view command) {
  if (command.find("terminal") == std::string_view::npos) return;
  const Id room = world->room();
  for (const Id id : Visible(*world)) {
    const Kind kind = (*world)[id].kind;
    if (kind != Kind::kDoor && kind != Kind::kDrain && kind != Kind::kTerminal && (kind != Kind::kRoom || id == room))
      world->AddEnds(id);
  }
}

}  // namespace embodied_mem::scienceworld
