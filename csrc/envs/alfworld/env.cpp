// The rules: which commands are admissible, and what they change.
#include "envs/alfworld/env.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/text.h"

namespace embodied_mem::alfworld {
namespace {

constexpr std::array<std::string_view, 14> kVerbTexts = {"clean ", "close ", "cool ",     "examine ", "go to ",
                                                         "heat ",  "help",   "inventory", "look",     "move ",
                                                         "open ",  "slice ", "take ",     "use "};

// The word between the two things of a command, "" for verbs with one thing or none.
std::string_view Joint(Verb verb, Wording wording) {
  switch (verb) {
    case Verb::kClean:
    case Verb::kCool:
    case Verb::kHeat:
    case Verb::kSlice: return " with ";
    case Verb::kTake: return " from ";
    case Verb::kMove: return wording == Wording::k04 ? " to " : " in/on ";
    default: return "";
  }
}

std::string_view VerbText(Verb verb, Wording wording) {
  if (verb == Verb::kMove && wording == Wording::k03) return "put ";
  return kVerbTexts[static_cast<std::size_t>(verb)];
}

}  // namespace

std::string CommandText(const Game& game, Wording wording, const Command& command) {
  std::string text(VerbText(command.verb, wording));
  if (command.first != kNone) text += game.NameOf(command.first);
  if (command.second != kNone) {
    text += Joint(command.verb, wording);
    text += game.NameOf(command.second);
  }
  return text;
}

bool Env::Here(std::uint16_t rank, bool receptacle) const {
  const NamedThing thing = game_->by_name[rank];
  if (thing.is_receptacle != receptacle) return false;
  return !receptacle || game_->receptacles[thing.index].location == agent_location();
}

bool Env::Parse(std::string_view text, Command* command) const {
  for (std::size_t v = 0; v < kVerbTexts.size(); ++v) {
    const auto verb = static_cast<Verb>(v);
    const std::string_view start = VerbText(verb, wording_);
    if (text.substr(0, start.size()) != start) continue;
    std::string_view rest = text.substr(start.size());
    *command = {verb, kNone, kNone};
    if (verb == Verb::kHelp) return rest.empty() && wording_ == Wording::k04;
    if (verb == Verb::kInventory || verb == Verb::kLook) return rest.empty();
    const std::string_view joint = Joint(verb, wording_);
    if (!joint.empty()) {
      const std::size_t at = rest.find(joint);
      if (at == std::string_view::npos) return false;
      command->second = game_->FindName(rest.substr(at + joint.size()));
      if (command->second == kNone) return false;
      rest = rest.substr(0, at);
    }
    command->first = game_->FindName(rest);
    return command->first != kNone;
  }
  return false;
}

bool Env::Applicable(const Command& command) const {
  const auto object = [this](std::uint16_t rank) -> std::size_t { return game_->by_name[rank].index; };
  const auto receptacle = object;
  switch (command.verb) {
    case Verb::kHelp:
    case Verb::kInventory:
    case Verb::kLook: return true;
    case Verb::kGoTo: {
      if (!game_->by_name[command.first].is_receptacle) return false;
      const std::uint16_t location = game_->receptacles[receptacle(command.first)].location;
      return location != kNone && location != agent_location();
    }
    case Verb::kOpen:
    case Verb::kClose: {
      if (!Here(command.first, true)) return false;
      const std::size_t r = receptacle(command.first);
      return game_->receptacles[r].openable && Opened(r) == (command.verb == Verb::kClose);
    }
    case Verb::kExamine:
      return game_->by_name[command.first].is_receptacle ? Here(command.first, true) : Held(object(command.first));
    case Verb::kUse: {
      if (!Here(command.first, false)) return false;
      const std::size_t o = object(command.first);
      if (!game_->objects[o].toggleable) return false;
      const auto& here = game_->locations[agent_location()].receptacles;
      return std::any_of(here.begin(), here.end(), [&](std::uint16_t r) { return Inside(o, r); });
    }
    case Verb::kSlice: {
      if (!Here(command.first, false) || !Here(command.second, false)) return false;
      const std::size_t target = object(command.first), knife = object(command.second);
      return game_->objects[target].sliceable && Bit(AtBase(agent_location()), target) &&
             game_->objects[knife].is_knife && Held(knife);
    }
    default: break;
  }
  if (!Here(command.first, false) || !Here(command.second, true)) return false;
  const std::size_t o = object(command.first), r = receptacle(command.second);
  const Receptacle& place = game_->receptacles[r];
  switch (command.verb) {
    case Verb::kTake: return game_->objects[o].pickupable && !holds_any() && Accessible(r) && Inside(o, r);
    case Verb::kMove: return Held(o) && Accessible(r) && ((place.accepts[o / 64] >> (o % 64)) & 1U) != 0;
    case Verb::kClean: return Held(o) && place.cleans && game_->objects[o].cleanable;
    case Verb::kHeat: return Held(o) && place.heats && game_->objects[o].heatable;
    case Verb::kCool: return Held(o) && place.cools && game_->objects[o].coolable;
    default: throw InternalError("a verb without a rule");
  }
}

void Env::Apply(const Command& command) {
  const auto index = [this](std::uint16_t rank) -> std::size_t { return game_->by_name[rank].index; };
  const StateLayout& layout = game_->layout;
  const std::uint16_t here = agent_location();
  switch (command.verb) {
    case Verb::kGoTo: state_[0] = (state_[0] & kHoldsAny) | game_->receptacles[index(command.first)].location; break;
    case Verb::kOpen: SetBit(layout.opened, index(command.first)); break;
    case Verb::kClose: ClearBit(layout.opened, index(command.first)); break;
    case Verb::kTake: {
      const std::size_t o = index(command.first), r = index(command.second);
      ClearBit(InsideBase(r), o);
      SetBit(RemovedBase(r), o);
      ClearBit(AtBase(here), o);
      SetBit(layout.held, o);
      state_[0] |= kHoldsAny;
      break;
    }
    case Verb::kMove: {
      const std::size_t o = index(command.first), r = index(command.second);
      SetBit(InsideBase(r), o);
      ClearBit(RemovedBase(r), o);
      SetBit(AtBase(here), o);
      ClearBit(layout.held, o);
      state_[0] &= ~kHoldsAny;
      break;
    }
    case Verb::kClean: SetBit(layout.clean, index(command.first)); break;
    case Verb::kHeat:
      SetBit(layout.hot, index(command.first));
      ClearBit(layout.cool, index(command.first));
      break;
    case Verb::kCool:
      SetBit(layout.cool, index(command.first));
      ClearBit(layout.hot, index(command.first));
      break;
    case Verb::kUse: SetBit(layout.toggled, index(command.first)); break;
    case Verb::kSlice: SetBit(layout.sliced, index(command.first)); break;
    case Verb::kExamine:
    case Verb::kHelp:
    case Verb::kInventory:
    case Verb::kLook: break;
  }
}

void Env::FillExtra(std::vector<Command>* commands) const {
  commands->clear();
  const Game& game = *game_;
  const auto rank_of = [&game](std::size_t o) { return game.objects[o].rank; };
  // What can be named here, each in the order of names: receptacles, pairs of object and receptacle, held things.
  std::vector<std::pair<std::uint16_t, std::uint16_t>> pairs;  // ranks: object, receptacle
  std::vector<std::uint16_t> places, held, lamps;              // ranks
  for (const std::uint16_t r : game.locations[agent_location()].receptacles) {
    places.push_back(game.receptacles[r].rank);
    const bool accessible = Accessible(r);
    ForEachInSet(InsideBase(r), [&](std::size_t o) {
      if (accessible && game.objects[o].pickupable) pairs.emplace_back(rank_of(o), game.receptacles[r].rank);
      if (game.objects[o].toggleable) lamps.push_back(rank_of(o));
    });
  }
  ForEachInSet(game.layout.held, [&](std::size_t o) { held.push_back(rank_of(o)); });
  std::sort(places.begin(), places.end());
  std::sort(held.begin(), held.end());
  const auto place = [&game](std::uint16_t rank) -> const Receptacle& {
    return game.receptacles[game.by_name[rank].index];
  };
  const auto object = [&game](std::uint16_t rank) -> const Object& { return game.objects[game.by_name[rank].index]; };
  const auto treat = [&](Verb verb, bool Receptacle::* place_flag, bool Object::* object_flag) {
    for (const std::uint16_t o : held) {
      for (const std::uint16_t r : places) {
        if (place(r).*place_flag && object(o).*object_flag) commands->push_back({verb, o, r});
      }
    }
  };
  const auto move = [&] {
    for (const std::uint16_t o : held) {
      const std::size_t index = game.by_name[o].index;
      for (const std::uint16_t r : places) {
        if (Accessible(game.by_name[r].index) && ((place(r).accepts[index / 64] >> (index % 64)) & 1U) != 0)
          commands->push_back({Verb::kMove, o, r});
      }
    }
  };
  treat(Verb::kClean, &Receptacle::cleans, &Object::cleanable);
  for (const std::uint16_t r : places) {
    if (place(r).openable && Opened(game.by_name[r].index)) commands->push_back({Verb::kClose, r, kNone});
  }
  treat(Verb::kCool, &Receptacle::cools, &Object::coolable);
  // The domain means to let objects be examined where they lie, but its type "location," (with the comma) is unknown.
  for (auto r = places.begin(), o = held.begin(); r != places.end() || o != held.end();) {
    const bool place_first = o == held.end() || (r != places.end() && *r < *o);
    commands->push_back({Verb::kExamine, place_first ? *r++ : *o++, kNone});
  }
  for (const std::uint16_t r : game.receptacles_by_name) {
    if (game.receptacles[r].location != agent_location())
      commands->push_back({Verb::kGoTo, game.receptacles[r].rank, kNone});
  }
  treat(Verb::kHeat, &Receptacle::heats, &Object::heatable);
  if (wording_ == Wording::k04) commands->push_back({Verb::kHelp, kNone, kNone});
  commands->push_back({Verb::kInventory, kNone, kNone});
  commands->push_back({Verb::kLook, kNone, kNone});
  if (wording_ == Wording::k04) move();
  for (const std::uint16_t r : places) {
    if (place(r).openable && !Opened(game.by_name[r].index)) commands->push_back({Verb::kOpen, r, kNone});
  }
  if (wording_ == Wording::k03) move();
  if (std::any_of(held.begin(), held.end(), [&](std::uint16_t o) { return object(o).is_knife; })) {
    std::vector<std::uint16_t> targets;
    ForEachInSet(AtBase(agent_location()), [&](std::size_t o) {
      if (game.objects[o].sliceable) targets.push_back(rank_of(o));
    });
    std::sort(targets.begin(), targets.end());
    for (const std::uint16_t target : targets) {
      for (const std::uint16_t knife : held) {
        if (object(knife).is_knife) commands->push_back({Verb::kSlice, target, knife});
      }
    }
  }
  if (!holds_any()) {
    std::sort(pairs.begin(), pairs.end());
    for (const auto& [o, r] : pairs) commands->push_back({Verb::kTake, o, r});
  }
  std::sort(lamps.begin(), lamps.end());
  lamps.erase(std::unique(lamps.begin(), lamps.end()), lamps.end());
  for (const std::uint16_t lamp : lamps) commands->push_back({Verb::kUse, lamp, kNone});
}

void Env::Reset(std::shared_ptr<const Game> game, Wording wording, std::uint64_t /*seed*/) {
  if (game == nullptr) throw InvalidInputError("expected a game, got none");
  game_ = std::move(game);
  wording_ = wording;
  state_ = game_->initial_state;
  num_steps_ = 0;
  UpdateWon();
  observation_ = "-= Welcome to TextWorld, ALFRED! =-\n\n";
  SayLook(true);
  observation_ += "\n\nYour task is to: ";
  observation_ += game_->task;
}

void Env::Step(std::string_view text) {
  if (game_ == nullptr) throw InternalError("Env::Step before the first Reset");
  ++num_steps_;
  observation_.clear();
  Command command{};
  if (!Parse(StripLikePython(text), &command) || !Applicable(command)) {
    observation_ = "Nothing happens.";
    return;
  }
  Apply(command);
  const auto name = [this](std::uint16_t rank) -> const std::string& { return game_->NameOf(rank); };
  const auto index = [this](std::uint16_t rank) -> std::size_t { return game_->by_name[rank].index; };
  const auto say = [this](std::string_view a, std::string_view b, std::string_view c, std::string_view d) {
    observation_.append(a).append(b).append(c).append(d).append(".");
  };
  switch (command.verb) {
    case Verb::kGoTo:
      say("You arrive at ", wording_ == Wording::k04 ? name(command.first) : game_->locations[agent_location()].name,
          "", "");
      observation_ += ' ';
      SayReceptacle(index(command.first));
      break;
    case Verb::kOpen:
      say("You open the ", name(command.first), "", "");
      observation_ += ' ';
      SayReceptacle(index(command.first));
      break;
    case Verb::kClose: say("You close the ", name(command.first), "", ""); break;
    case Verb::kTake: say("You pick up the ", name(command.first), " from the ", name(command.second)); break;
    case Verb::kMove:
      if (wording_ == Wording::k04) say("You move the ", name(command.first), " to the ", name(command.second));
      else say("You put the ", name(command.first), " in/on the ", name(command.second));
      break;
    case Verb::kClean: say("You clean the ", name(command.first), " using the ", name(command.second)); break;
    case Verb::kHeat: say("You heat the ", name(command.first), " using the ", name(command.second)); break;
    case Verb::kCool: say("You cool the ", name(command.first), " using the ", name(command.second)); break;
    case Verb::kSlice: say("You sliced the ", name(command.first), " with the ", name(command.second)); break;
    case Verb::kUse: say("You turn on the ", name(command.first), "", ""); break;
    case Verb::kExamine:
      if (game_->by_name[command.first].is_receptacle) SayReceptacle(index(command.first));
      else SayObject(index(command.first));
      return;
    case Verb::kInventory: SayInventory(); return;
    case Verb::kLook: SayLook(false); return;
    case Verb::kHelp: SayHelp(); return;
  }
  UpdateWon();
}

int Env::ConditionsHeld(int* total) const {
  const Game& game = *game_;
  const std::size_t words = game.layout.object_words;
  int best = 0;
  const auto each = [&](const std::vector<std::uint64_t>& set, auto visit) {
    for (std::size_t w = 0; w < words; ++w) {
      for (std::uint64_t bits = set[w]; bits != 0; bits &= bits - 1)
        visit(w * 64 + static_cast<std::size_t>(__builtin_ctzll(bits)));
    }
  };
  if (game.goal.type == TaskType::kLook) {
    *total = 3;
    int held = 0;
    each(game.goal_objects, [&](std::size_t o) { held = held || Held(o) ? 1 : 0; });
    each(game.goal_lamps, [&](std::size_t o) {
      const auto& here = game.locations[agent_location()].receptacles;
      const bool near = std::any_of(here.begin(), here.end(), [&](std::uint16_t r) { return Inside(o, r); });
      best = std::max(best, static_cast<int>(near) + static_cast<int>(Toggled(o)));
    });
    return best + held;
  }
  if (game.goal.type == TaskType::kPlaceTwo) {
    *total = 2;
    for (const std::uint16_t r : game.goal_receptacles) {
      int count = 0;
      for (std::size_t w = 0; w < words; ++w)
        count += __builtin_popcountll(state_[InsideBase(r) + w] & game.goal_objects[w]);
      best = std::max(best, std::min(count, 2));
    }
    return best;
  }
  const std::size_t treated = game.goal.type == TaskType::kClean  ? game.layout.clean
                              : game.goal.type == TaskType::kHeat ? game.layout.hot
                              : game.goal.type == TaskType::kCool ? game.layout.cool
                                                                  : 0;
  *total = treated == 0 ? 1 : 2;
  each(game.goal_objects, [&](std::size_t o) {
    const bool placed = std::any_of(game.goal_receptacles.begin(), game.goal_receptacles.end(),
                                    [&](std::uint16_t r) { return Inside(o, r); });
    best = std::max(best, static_cast<int>(placed) + static_cast<int>(treated != 0 && Bit(treated, o)));
  });
  return best;
}

void Env::UpdateWon() {
  int total = 1;
  won_ = ConditionsHeld(&total) == total;
}

double Env::progress() const {
  int total = 1;
  const int held = ConditionsHeld(&total);
  return static_cast<double>(held) / total;
}

}  // namespace embodied_mem::alfworld
