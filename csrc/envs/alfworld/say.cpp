// What the player reads.
#include "envs/alfworld/env.h"

namespace embodied_mem::alfworld {

void Env::SayList(const std::vector<const std::string*>& names) {
  if (names.empty()) observation_ += "nothing";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) observation_ += i + 1 == names.size() ? ", and " : ", ";
    observation_ += "a ";
    observation_ += *names[i];
  }
}

void Env::SayContent(std::size_t r) {
  std::vector<const std::string*> names;
  ForEachInSet(InsideBase(r), [&](std::size_t o) { names.push_back(&game_->objects[o].name); });
  SayList(names);
  observation_ += '.';
}

void Env::SayReceptacle(std::size_t r) {
  const Receptacle& receptacle = game_->receptacles[r];
  if (!receptacle.openable) {
    observation_.append("On the ").append(receptacle.name).append(", you see ");
  } else if (Opened(r)) {
    observation_.append("The ").append(receptacle.name).append(" is open. In it, you see ");
  } else {
    observation_.append("The ").append(receptacle.name).append(" is closed.");
    return;
  }
  SayContent(r);
}

void Env::SayObject(std::size_t o) {
  const Object& object = game_->objects[o];
  if (object.is_container) {
    observation_.append("This is a normal ").append(object.name).append(". In it, you see ");
    std::vector<const std::string*> names;
    for (const std::uint16_t inner : object.inner) names.push_back(&game_->objects[inner].name);
    SayList(names);
    observation_ += '.';
    return;
  }
  const bool clean = Clean(o), hot = Hot(o), cool = Cool(o), sliced = Sliced(o);
  const char* kind = nullptr;
  if (clean && hot) kind = sliced ? "hot and clean sliced " : "hot and clean ";
  if (kind == nullptr && clean && cool && sliced) kind = "cool and clean sliced ";
  if (kind == nullptr && sliced) kind = clean ? "clean sliced " : hot ? "hot sliced " : cool ? "cool sliced " : nullptr;
  if (kind == nullptr && clean && cool) kind = "cool and clean ";
  if (kind == nullptr) kind = hot ? "hot " : clean ? "clean " : cool ? "cold " : nullptr;
  if (kind != nullptr) {
    observation_.append("This is a ").append(kind).append(object.name).append(".");
  } else if (object.toggleable && Toggled(o)) {
    observation_.append("This ").append(object.name).append(" is on.");
  } else if (object.sliceable && sliced) {
    observation_.append("This is a sliced ").append(object.name).append(".");
  } else {
    observation_.append("There's nothing special about ").append(object.name).append(".");
  }
}

void Env::SayInventory() {
  if (!holds_any()) {
    observation_ += "You are not carrying anything.";
    return;
  }
  observation_ += "You are carrying: ";
  std::vector<const std::string*> names;
  ForEachInSet(game_->layout.held, [&](std::size_t o) { names.push_back(&game_->objects[o].name); });
  SayList(names);
  observation_ += '.';
}

// The intro asks for receptacles anywhere, `look` for those at the agent's own location: in the middle of the
// room the original therefore sees everything at first and "nothing" later.
void Env::SayLook(bool intro) {
  const std::vector<std::uint16_t>& here = game_->locations[agent_location()].receptacles;
  std::vector<const std::string*> names;
  if (here.empty()) {
    observation_ += "You are in the middle of a room. Looking quickly around you, you see ";
    for (const Receptacle& receptacle : game_->receptacles) {
      if (intro && receptacle.location != kNone) names.push_back(&receptacle.name);
    }
    SayList(names);
    observation_ += '.';
    return;
  }
  observation_ += "You are facing the ";
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (i > 0) observation_ += i + 1 == here.size() ? ", and " : ", ";
    observation_ += game_->receptacles[here[i]].name;
  }
  observation_ += ". Next to it, you see ";
  // What lies here and was taken out of one of these receptacles: the original lists it once for each of them.
  ForEachInSet(AtBase(agent_location()), [&](std::size_t o) {
    for (const std::uint16_t r : here) {
      if (Bit(RemovedBase(r), o)) names.push_back(&game_->objects[o].name);
    }
  });
  SayList(names);
  observation_ += '.';
}

void Env::SayHelp() {
  struct Entry {
    const char* command;
    const char* meaning;
  };
  // The blanks are the original's; one line of its table is two short.
  static constexpr Entry kEntries[] = {
      {"look:                             ", "look around your current location"},
      {"inventory:                        ", "check your current inventory"},
      {"go to (receptacle):               ", "move to a receptacle"},
      {"open (receptacle):                ", "open a receptacle"},
      {"close (receptacle):               ", "close a receptacle"},
      {"take (object) from (receptacle):  ", "take an object from a receptacle"},
      {"move (object) to (receptacle):  ", "place an object in or on a receptacle"},
      {"examine (something):              ", "examine a receptacle or an object"},
      {"use (object):                     ", "use an object"},
      {"heat (object) with (receptacle):  ", "heat an object using a receptacle"},
      {"clean (object) with (receptacle): ", "clean an object using a receptacle"},
      {"cool (object) with (receptacle):  ", "cool an object using a receptacle"},
      {"slice (object) with (object):     ", "slice an object using a sharp object"},
  };
  observation_ += "Available commands:\n";
  for (const Entry& entry : kEntries)
    observation_.append("  ").append(entry.command).append(entry.meaning).append("\n");
}

}  // namespace embodied_mem::alfworld
