#include "envs/scienceworld/parse.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "envs/scienceworld/say.h"
#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {
namespace {

struct Template {
  Verb verb;
  std::string_view begin;
  const char* middle;  // nullptr: one thing; "": none
};

constexpr Template kTemplates[] = {
    {Verb::kActivate, "activate ", nullptr},
    {Verb::kActivate, "turn on ", nullptr},
    {Verb::kDeactivate, "deactivate ", nullptr},
    {Verb::kDeactivate, "turn off ", nullptr},
    {Verb::kClose, "close ", nullptr},
    {Verb::kOpen, "open ", nullptr},
    {Verb::kConnect, "connect ", " to "},
    {Verb::kDisconnect, "disconnect ", nullptr},
    {Verb::kDunk, "dunk ", " in "},
    {Verb::kDunk, "dunk ", " into "},
    {Verb::kEat, "eat ", nullptr},
    {Verb::kEat, "consume ", nullptr},
    {Verb::kFlush, "flush ", nullptr},
    {Verb::kFocus, "focus on ", nullptr},
    {Verb::kFocus, "focus ", nullptr},
    {Verb::kGo, "go to ", nullptr},
    {Verb::kGo, "go through ", nullptr},
    {Verb::kGo, "go into ", nullptr},
    {Verb::kGo, "go ", nullptr},
    {Verb::kGo, "walk to ", nullptr},
    {Verb::kGo, "walk through ", nullptr},
    {Verb::kGo, "move to ", nullptr},
    {Verb::kInventory, "inventory", ""},
    {Verb::kLookAround, "look around", ""},
    {Verb::kLookAround, "look", ""},
    {Verb::kLookAt, "look at ", nullptr},
    {Verb::kLookAt, "look on ", nullptr},
    {Verb::kLookAt, "examine ", nullptr},
    {Verb::kLookIn, "look in ", nullptr},
    {Verb::kMix, "mix ", nullptr},
    {Verb::kMix, "stir ", nullptr},
    {Verb::kMove, "move ", " to "},
    {Verb::kMove, "move ", " into "},
    {Verb::kMove, "move ", " in "},
    {Verb::kMove, "move ", " on "},
    {Verb::kMove, "put ", " to "},
    {Verb::kMove, "put ", " into "},
    {Verb::kMove, "put ", " in "},
    {Verb::kMove, "put ", " on "},
    {Verb::kPickUp, "pick up ", nullptr},
    {Verb::kPickUp, "get ", nullptr},
    {Verb::kPickUp, "take ", nullptr},
    {Verb::kPour, "pour ", " in "},
    {Verb::kPour, "pour ", " into "},
    {Verb::kPour, "pour ", " to "},
    {Verb::kPour, "pour ", " on "},
    {Verb::kPutDown, "put down ", nullptr},
    {Verb::kPutDown, "drop ", nullptr},
    {Verb::kRead, "read ", nullptr},
    {Verb::kReset, "reset task", ""},
    {Verb::kTask, "task", ""},
    {Verb::kTeleport, "teleport to ", nullptr},
    {Verb::kTeleport, "teleport ", nullptr},
    {Verb::kUse, "use ", " on "},
    {Verb::kUse, "use ", " with "},
    {Verb::kWait, "wait", ""},
    {Verb::kWait1, "wait1", ""},
};

// A command in lower case, its words one space apart, without articles.
std::string Plain(std::string_view command) {
  std::string text;
  text.reserve(command.size());
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  for (std::size_t at = 0; at < command.size();) {
    if (is_space(command[at])) {
      ++at;
      continue;
    }
    const std::size_t kept = text.size();
    if (kept > 0) text += ' ';
    const std::size_t begin = text.size();
    for (; at < command.size() && !is_space(command[at]); ++at) {
      const char c = command[at];
      text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    const std::string_view word = std::string_view(text).substr(begin);
    if (word == "the" || word == "a" || word == "an") text.resize(kept);
  }
  return text;
}

// Terminals may lie elsewhere than their thing; the first place counts.
void AddOnce(Id id, std::vector<Id>* found) {
  if (std::find(found->begin(), found->end(), id) == found->end()) found->push_back(id);
}

void Collect(const World& world, Id id, bool all_ends, std::vector<Id>* found) {
  if (world[id].kind == Kind::kTerminal) {
    if (all_ends) AddOnce(id, found);
    return;
  }
  found->push_back(id);
  const Thing& thing = world[id];
  if (thing.drain != kNone && thing.kind != Kind::kRoom) found->push_back(thing.drain);
  if (thing.end != kNone && (all_ends || ShowsEnds(thing.kind)))
    for (const Id end : {thing.end, thing.end + 1}) AddOnce(end, found);
  if (!thing.open) return;
  for (const Id inner : thing.inside) Collect(world, inner, all_ends, found);
}

// The place of a name in the original's set of a thing's names: Scala's, by five bits of a mixed hash after five.
std::uint32_t SetOrder(std::string_view name) {
  std::uint32_t hash = 0;
  for (const char c : name) hash = hash * 31 + static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  hash += ~(hash << 9);
  hash ^= hash >> 14;
  hash += hash << 4;
  hash ^= hash >> 10;
  std::uint32_t order = 0;
  for (int bits = 0; bits < 30; bits += 5) order = order << 5 | (hash >> bits & 31);
  return order;
}

// The name of the thing that the text is; empty for none.
std::string NameIn(const World& world, std::string_view text, Id id) {
  for (const std::string& name : Names(world, id, text.empty() ? '\0' : text[0]))
    if (text == Plain(name)) return name;
  return {};
}

// The name of the thing, perhaps with its place, that the text is; empty for none.
std::string FullNameIn(const World& world, std::string_view text, Id id) {
  for (const std::string& full : Names(world, id, text.empty() ? '\0' : text[0])) {
    const std::string name = Plain(full);
    if (text.substr(0, name.size()) != name) continue;
    const std::string_view rest = text.substr(name.size());
    if (rest.empty()) return full;
    const Id holder = world[id].parent;
    if (world[id].kind == Kind::kDoor || world[id].kind == Kind::kDrain || holder == kNone) continue;
    const std::string in(rest.substr(0, 4));
    if ((in != " in " && in != " on ") || rest.size() == 4) continue;
    if (const std::string outer = NameIn(world, rest.substr(4), holder); !outer.empty()) return full + in + outer;
  }
  return {};
}

}  // namespace

std::vector<Id> Visible(const World& world, bool all_ends) {
  const Id room = world.room();
  std::vector<Id> found;
  if (all_ends && world[room].end != kNone)
    for (const Id end : {world[room].end, world[room].end + 1}) found.push_back(end);
  for (const Id inner : world[room].inside) Collect(world, inner, all_ends, &found);
  Collect(world, world.inventory, all_ends, &found);
  found.push_back(room);
  for (const Id door : world.DoorsOf(room)) found.insert(found.end(), {door, world[door].leads});
  return found;
}

std::vector<Action> Parse(const World& world, std::string_view command, bool teleports, bool wires) {
  const std::string text = Plain(command);
  std::vector<Action> found;
  std::vector<Id> visible;
  const auto meant = [&](std::string_view words) {
    if (visible.empty()) visible = Visible(world, true);
    std::vector<Id> ids;
    for (const Id id : visible)
      if (!FullNameIn(world, words, id).empty()) ids.push_back(id);
    return ids;
  };
  const auto add = [&](Verb verb, Id first, Id second) {
    for (const Action& action : found)
      if (action.verb == verb && action.first == first && action.second == second) return false;
    found.push_back({verb, first, second});
    return true;
  };
  struct Split {  // a command with two things: where they are in view, how the first is called
    std::size_t first;
    std::uint32_t called;
    std::size_t second;
    Action action;
  };
  std::vector<Split> splits;
  for (const Template& row : kTemplates) {
    if (!wires && (row.verb == Verb::kConnect || row.verb == Verb::kDisconnect)) continue;
    const std::string_view begin = row.begin;
    if (text.empty() || text[0] != begin[0]) continue;
    if (row.middle != nullptr && *row.middle == '\0') {
      if (text == begin) add(row.verb, kNone, kNone);
      continue;
    }
    if (text.compare(0, begin.size(), begin) != 0) continue;
    const std::string_view rest = std::string_view(text).substr(begin.size());
    if (row.verb == Verb::kTeleport) {
      for (const Id room : world[world.universe].inside)
        if (teleports && world[room].kind == Kind::kRoom && rest == world[room].name) add(row.verb, room, kNone);
    } else if (row.middle == nullptr) {
      for (const Id id : meant(rest)) add(row.verb, id, kNone);
    } else {
      const std::string_view middle = row.middle;
      const auto place = [&](Id id) {
        return static_cast<std::size_t>(std::find(visible.begin(), visible.end(), id) - visible.begin());
      };
      for (std::size_t at = rest.find(middle); at != std::string_view::npos; at = rest.find(middle, at + 1)) {
        const std::vector<Id> firsts = meant(rest.substr(0, at));
        if (firsts.empty()) continue;
        const std::vector<Id> seconds = meant(rest.substr(at + middle.size()));
        for (const Id first : firsts)
          for (const Id second : seconds)
            if (add(row.verb, first, second))
              splits.push_back(
                  {place(first), SetOrder(FullNameIn(world, rest.substr(0, at), first)), place(second), found.back()});
      }
    }
  }
  if (splits.size() == found.size()) {  // one verb
    std::stable_sort(splits.begin(), splits.end(), [](const Split& a, const Split& b) {
      return std::tie(a.first, a.called, a.second) < std::tie(b.first, b.called, b.second);
    });
    for (std::size_t k = 0; k < splits.size(); ++k) found[k] = splits[k].action;
  }
  return found;
}

std::string Help(bool teleports, bool wires) {
  std::vector<std::string> forms;
  const Template* before = nullptr;
  for (const Template& row : kTemplates) {
    const bool can = row.verb == Verb::kTeleport
                         ? teleports
                         : wires || (row.verb != Verb::kConnect && row.verb != Verb::kDisconnect);
    if (can && (before == nullptr || before->verb != row.verb)) {
      const std::string_view begin = row.verb == Verb::kGo ? "go " : row.begin;
      const bool none = row.middle != nullptr && *row.middle == '\0';
      forms.push_back("\n\t" + std::string(begin) + (none ? "" : "OBJ"));
      if (row.middle != nullptr && !none) forms.back() += std::string(row.middle) + "OBJ";
    }
    before = &row;
  }
  std::sort(forms.begin(), forms.end());
  std::string text = "Possible actions: ";
  for (const std::string& form : forms) text += form;
  return text;
}

std::string Words(const World& world, const Action& action) {
  const Template* row = nullptr;
  for (const Template& candidate : kTemplates)
    if (candidate.verb == action.verb) {
      row = &candidate;
      break;
    }
  const auto thing = [&](Id id) {
    const bool door = world[id].kind == Kind::kDoor || world[id].kind == Kind::kDrain;
    return ActionName(world, id) + (door ? "" : " " + Where(world, id));
  };
  if (action.verb == Verb::kGo) return "go " + thing(action.first);
  std::string text(row->begin);
  if (action.first != kNone) text += thing(action.first);
  if (action.second != kNone) text += row->middle + thing(action.second);
  return text;
}

}  // namespace embodied_mem::scienceworld
