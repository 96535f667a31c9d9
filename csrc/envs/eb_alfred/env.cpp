#include "envs/eb_alfred/env.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "envs/eb_alfred/holders.h"

namespace embodied_mem::eb_alfred {
namespace {

constexpr std::string_view kValid = "Last action executed successfully.";
constexpr std::string_view kInvalid = "Last action is invalid. ";
constexpr std::uint8_t kDropsFrom = 3;  // from the third put down onto one name on, a failed one drops the object

// The number of the action that a text names, kNone if it names none.
std::uint16_t ParseAction(const Task& task, std::string_view text) {
  text = StripLikePython(text);
  const auto found = task.by_text.find(text);
  if (found != task.by_text.end()) return found->second;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number < task.actions.size() ? static_cast<std::uint16_t>(number) : kNone;
}

}  // namespace

void Env::Reset(std::shared_ptr<const Task> task, const Options& options, std::uint64_t /*seed*/) {
  if (task == nullptr) throw InvalidInputError("expected a task, got none");
  if (options.max_invalid < 1 || options.max_invalid > kMaxInvalid)
    throw InvalidInputError("max_invalid: expected 1 to " + std::to_string(kMaxInvalid) + ", got " +
                            std::to_string(options.max_invalid));
  *this = Env();
  task_ = std::move(task);
  options_ = options;
  things_.resize(task_->things.size());
  num_put_down_.assign(task_->names.size(), 0);
  for (std::size_t i = 0; i < things_.size(); ++i) {
    const Thing& thing = task_->things[i];
    State& state = things_[i];
    state.position = thing.position;
    state.group = thing.group;
    state.exists = !thing.is_slice;
    state.open = thing.starts_open;
    state.on = thing.starts_on;
  }
  agent_ = task_->agent;
  facing_x_ = task_->facing_x;
  facing_z_ = task_->facing_z;
  Look();
  Score();
  observation_ = "Your task is to: " + task_->instruction;
  if (options_.shows_view) SayView();
}

void Env::Step(std::string_view action) {
  if (task_ == nullptr) throw InternalError("Step before the first Reset");
  if (ended()) return;
  const std::uint16_t index = ParseAction(*task_, action);
  unusable_ = index == kNone;
  if (unusable_) {
    Fail("The answer is no action of the list");
  } else {
    ++num_steps_;
    const Action& chosen = task_->actions[index];
    const Name* name = chosen.name == kNone ? nullptr : &task_->names[chosen.name];
    if (chosen.verb != Verb::kPutDown && chosen.verb != Verb::kOpen) current_ = kNone;
    switch (chosen.verb) {
      case Verb::kFind: Find(*name, chosen.name); break;
      case Verb::kPickUp: PickUp(*name); break;
      case Verb::kPutDown: PutDown(); break;
      case Verb::kDrop:
        if (held_ == kNone) {
          Fail("Robot is not holding any object");
        } else {
          Drop();
          Succeed();
        }
        break;
      case Verb::kOpen: OpenOrClose(*name, true); break;
      case Verb::kClose: OpenOrClose(*name, false); break;
      case Verb::kTurnOn: Toggle(*name, true); break;
      case Verb::kTurnOff: Toggle(*name, false); break;
      case Verb::kSlice: Slice(*name); break;
    }
    Look();
    Score();
  }
  if (!valid_) ++num_invalid_;
  observation_ = feedback_;
  if (options_.shows_view) SayView();
}

void Env::Succeed() {
  valid_ = true;
  feedback_ = kValid;
}

void Env::Fail(std::string_view a, std::string_view b, std::string_view c, std::string_view d) {
  valid_ = false;
  feedback_ = kInvalid;
  feedback_.append(a).append(b).append(c).append(d);
}

void Env::Find(const Name& name, std::uint16_t name_index) {
  std::uint16_t target = name.thing;
  if (target == kNone) {
    target = Choose(name, Purpose::kFind);
  } else if (things_[target].cut) {
    std::uint16_t slice = Choose(name, Purpose::kFind);
    const bool own = slice != kNone && task_->things[slice].whole == target;
    if (!own && options_.instance == Instance::kFound) {
      std::uint16_t slices[kNumSlices];
      for (std::size_t k = 0; k < kNumSlices; ++k)
        slices[k] = static_cast<std::uint16_t>(task_->things[target].slices + k);
      slice = Nearest(slices, kNumSlices, Purpose::kFind, false);
    }
    if (slice != kNone && task_->things[slice].whole == target) target = slice;
  }
  if (target == kNone) {
    return Fail("Cannot find ", name.shown,
                ". This object may not exist in this scene. Try to explore other instances instead.");
  }
  GoTo(target);
  current_ = name_index;
  Succeed();
}

void Env::PickUp(const Name& name) {
  const std::uint16_t target = Choose(name, Purpose::kPickUp);
  if (target == kNone) return Fail("Cannot find ", name.shown, " to pick up. Find the object before picking up it");
  if (!things_[target].visible) {
    std::uint16_t first = kNone;
    AnyHolder(target, [&](std::uint16_t holder) {
      first = holder;
      return true;
    });
    if (first != kNone) {
      Fail(name.shown, " is not visible because it is in ", task_->things[first].name,
           ". Go there to pick the object instead.");
      return;
    }
  }
  if (held_ != kNone) return Fail("Robot is currently holding ", task_->catalog->types[task_->things[held_].type].name);
  if (!things_[target].visible) return Fail("Robot is not holding any object");
  for (std::size_t i = task_->num_places; i < things_.size(); ++i) {
    if (i != target && things_[i].parent == kStart && Inside(i, target)) {
      // It leaves the other things that it was in at the start, and stays in the one that moves (or in one in it).
      AnyHolder(i, [&](std::uint16_t holder) {
        const bool moves = holder == target || (holder >= task_->num_places && Inside(holder, target));
        if (moves) things_[i].parent = holder;
        return moves;
      });
    }
  }
  things_[target].parent = kHand;
  held_ = target;
  Succeed();
}

std::uint16_t Env::PutDownTarget(const Name& name) const {
  if (name.thing != kNone) return name.thing;
  const auto fits = [&](std::uint16_t t) {
    return Fits(t, Purpose::kPutDown) && (name.basin == 0 || task_->things[t].basin == t);
  };
  // What was found counts while it is one of what the name means: "find" of a thing in the hand finds nothing new.
  if (options_.instance == Instance::kFound && found_ != kNone &&
      std::find(name.candidates.begin(), name.candidates.end(), found_) != name.candidates.end()) {
    const std::uint16_t basin = task_->things[found_].basin;
    const std::uint16_t target = name.basin != 0 && basin != kNone ? basin : found_;
    if (fits(target)) return target;
  }
  std::uint16_t best = kNone;
  for (const std::uint16_t t : name.candidates) {
    if (fits(t) && (best == kNone || Distance(t) < Distance(best))) best = t;
  }
  return best;
}

bool Env::TryPlace(std::uint16_t target) {
  const Thing& thing = task_->things[target];
  if (!thing.receptacle || !things_[target].visible || InHand(target) || !Accessible(target)) return false;
  const auto& types = task_->catalog->types;
  if (types[thing.type].name == "ToiletPaperHanger" && types[task_->things[held_].type].name != "ToiletPaper")
    return false;
  for (std::size_t i = task_->num_places; i < things_.size(); ++i) {
    if (i == held_ || Inside(i, held_)) things_[i].position = things_[target].position;
  }
  things_[held_].parent = target;
  held_ = kNone;
  return true;
}

void Env::PutDown() {
  if (held_ == kNone) return Fail("Robot is not holding any object");
  if (current_ == kNone) {
    Drop();
    return Succeed();
  }
  const Name& name = task_->names[current_];
  std::uint8_t& count = num_put_down_[current_];
  if (count < kDropsFrom) ++count;
  const std::uint16_t target = PutDownTarget(name);
  if (target != kNone && TryPlace(target)) return Succeed();
  std::uint16_t other = kNone;  // the nearest other instance of the type
  for (std::uint16_t t = 0; target != kNone && t < things_.size(); ++t) {
    if (t == target || task_->things[t].type != task_->things[target].type || !Fits(t, Purpose::kPutDown)) continue;
    if (other == kNone || Distance(t) < Distance(other)) other = t;
  }
  if (other != kNone && TryPlace(other)) return Succeed();
  Fail("Putting the object on ", name.shown, " failed. First check ",
       other != kNone && name.basin != 0 ? "the receptacle is open or not. Also try other instances of the receptacle"
                                         : "whether the receptacle is open or not. Also try other instances of the "
                                           "receptacle");
  if (count >= kDropsFrom) {
    Drop();
    feedback_ += ". The robot dropped the object instead.";
  }
}

void Env::Drop() {
  State& state = things_[held_];
  state.parent = kNone;
  state.group = focus_group_;
  for (std::size_t i = task_->num_places; i < things_.size(); ++i) {
    if (i == held_ || Inside(i, held_)) things_[i].position = {agent_.x, 0, agent_.z};
  }
  held_ = kNone;
}

void Env::OpenOrClose(const Name& name, bool open) {
  const std::uint16_t target = name.thing != kNone ? name.thing : Nearest(name, Purpose::kOpen, true);
  if (target == kNone) {
    return Fail("Cannot find ", name.shown, open ? " to open. Find the object before opening it" : " to close");
  }
  const Thing& thing = task_->things[target];
  State& state = things_[target];
  const std::string_view failed = open ? "Open action failed." : "Close action failed";
  if (!thing.openable || (state.open != open && !state.visible) || (open && thing.is_microwave && state.on))
    return Fail(failed);
  if (state.open == open) {
    return Fail(open ? "Open action failed. The " : "Close action failed. The ", name.shown,
                open ? " is already open" : " is already closed");
  }
  state.open = open;
  if (!open && thing.is_fridge) {
    for (std::size_t i = task_->num_places; i < things_.size(); ++i) {
      if (Inside(i, target)) things_[i].cold = true;
    }
  }
  Succeed();
}

void Env::Toggle(const Name& name, bool on) {
  const std::uint16_t target = Nearest(name, Purpose::kToggle, false);
  if (target == kNone) return Fail("Cannot find ", name.shown, on ? " to turn on" : " to turn off");
  const Thing& thing = task_->things[target];
  State& state = things_[target];
  const std::string_view failed = on ? "Turn on action failed" : "Turn off action failed";
  if (!state.visible || state.on == on || (on && thing.is_microwave && state.open)) return Fail(failed);
  std::uint16_t treated = thing.is_microwave ? target : kNone;
  if (name.text == "Faucet" && on) {
    for (std::uint16_t t = 0; t < task_->num_places; ++t) {
      if (!task_->things[t].is_sink_basin || !things_[t].visible) continue;
      const auto away = [&](std::uint16_t basin) {
        const Point &a = things_[basin].position, &b = state.position;
        return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) + (a.z - b.z) * (a.z - b.z);
      };
      if (treated == kNone || away(t) < away(treated)) treated = t;
    }
    if (treated == kNone) return Fail(failed);
  }
  state.on = on;
  for (std::size_t i = task_->num_places; on && treated != kNone && i < things_.size(); ++i) {
    if (!Inside(i, treated)) continue;
    (thing.is_microwave ? things_[i].hot : things_[i].clean) = true;
  }
  Succeed();
}

void Env::Slice(const Name& name) {
  prefers_slices_ = true;
  const std::uint16_t target = Choose(name, Purpose::kSlice);
  if (target == kNone) return Fail("Cannot find ", name.shown, " to slice");
  const Thing& thing = task_->things[target];
  State& state = things_[target];
  const bool knife = held_ != kNone && task_->things[held_].id.find("Knife") != std::string::npos;
  if (thing.slices == kNone || state.cut || !state.visible || InHand(target) || (options_.needs_knife && !knife))
    return Fail("Slice action failed");
  for (std::size_t k = 0; k < kNumSlices; ++k) {
    State& slice = things_[thing.slices + k];
    slice.exists = true;
    slice.parent = state.parent;
    slice.position = state.position;
    slice.group = state.group;
  }
  state.cut = true;
  state.parent = kNone;
  Succeed();
}

std::vector<std::uint16_t> Env::ValidActions() const {
  std::vector<std::uint16_t> valid;
  Env copy = *this;
  copy.options_.shows_view = false;
  const Env start = copy;
  for (std::size_t i = 0; !ended() && i < task_->actions.size(); ++i) {
    copy = start;
    copy.Step(task_->actions[i].text);
    if (copy.valid_) valid.push_back(static_cast<std::uint16_t>(i));
  }
  return valid;
}

}  // namespace embodied_mem::eb_alfred
