// The list of actions: 162 fixed ones, then those for further instances of the scene.
#include <algorithm>
#include <cctype>
#include <map>

#include "core/error.h"
#include "envs/eb_alfred/scene.h"

namespace embodied_mem::eb_alfred {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "CellPhone" is shown as "Cellphone"; "CD" and what holds a digit stay.
std::string Shown(const std::string& name) {
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (name == "CD" || std::any_of(name.begin(), name.end(), digit)) return name;
  std::string shown = name;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto c = static_cast<unsigned char>(shown[i]);
    shown[i] = static_cast<char>(i == 0 ? std::toupper(c) : std::tolower(c));
  }
  return shown;
}

class Builder {
 public:
  explicit Builder(Task* task) : task_(*task), catalog_(*task->catalog) {}

  void Build() {
    NumberThings();
    for (const auto& type : catalog_.find) Add(Verb::kFind, "find a ", type);
    for (const auto& type : catalog_.pick_up) Add(Verb::kPickUp, "pick up the ", type);
    task_.actions.push_back({"put down the object in hand", Verb::kPutDown, kNone});
    task_.actions.push_back({"drop the object in hand", Verb::kDrop, kNone});
    for (const auto& type : catalog_.open_close) AddPair(Verb::kOpen, "open the ", Verb::kClose, "close the ", type);
    for (const auto& type : catalog_.turn_on_off)
      AddPair(Verb::kTurnOn, "turn on the ", Verb::kTurnOff, "turn off the ", type);
    for (const auto& type : catalog_.slice) Add(Verb::kSlice, "slice the ", type);
    for (const auto& entry : receptacles_) Add(Verb::kFind, "find a ", entry.first);
    for (const auto& [name, thing] : receptacles_) {
      if (Contains(catalog_.open_close, catalog_.types[task_.things[thing].type].name))
        AddPair(Verb::kOpen, "open the ", Verb::kClose, "close the ", name);
    }
    for (const auto& entry : others_) Add(Verb::kFind, "find a ", entry.first);
    for (std::size_t i = 0; i < task_.actions.size(); ++i)
      task_.by_text.emplace(task_.actions[i].text, static_cast<std::uint16_t>(i));
  }

 private:
  // Gives instances of receptacles and pickupables their names; the maps sort them as text.
  void NumberThings() {
    std::map<std::uint16_t, std::vector<std::uint16_t>> by_type;
    for (std::size_t i = 0; i < task_.things.size(); ++i) {
      const Thing& thing = task_.things[i];
      if (!thing.is_slice && (thing.receptacle || thing.pickupable))
        by_type[thing.type].push_back(static_cast<std::uint16_t>(i));
    }
    for (const auto& [type, things] : by_type) {
      if (things.size() < 2) continue;
      const Type& info = catalog_.types[type];
      first_[info.name] = things[0];
      for (std::size_t k = 1; k < things.size(); ++k) {
        Thing& thing = task_.things[things[k]];
        thing.name = info.name + "_" + std::to_string(k + 1);
        if (info.receptacle) {
          receptacles_[thing.name] = things[k];
        } else if (Contains(catalog_.pick_up, info.name)) {
          others_[thing.name] = things[k];
        }
      }
    }
  }

  std::uint16_t NameIndex(const std::string& text) {
    const auto found = names_.find(text);
    if (found != names_.end()) return found->second;
    Name name;
    name.text = text;
    name.shown = Shown(text);
    std::string type = text;
    for (const auto* numbered : {&receptacles_, &others_, &first_}) {
      const auto instance = numbered->find(text);
      if (instance == numbered->end()) continue;
      name.thing = instance->second;
      type = catalog_.types[task_.things[name.thing].type].name;
    }
    for (std::size_t i = 0; i < task_.things.size(); ++i) {
      if (task_.things[i].id.compare(0, type.size() + 1, type + "|") == 0)
        name.candidates.push_back(static_cast<std::uint16_t>(i));
    }
    name.basin = type == "Sink" || type == "Bathtub" ? 1 : 0;
    const auto index = static_cast<std::uint16_t>(task_.names.size());
    names_.emplace(text, index);
    task_.names.push_back(std::move(name));
    return index;
  }

  void Add(Verb verb, const char* words, const std::string& name) {
    task_.actions.push_back({words + name, verb, NameIndex(name)});
  }
  void AddPair(Verb first, const char* first_words, Verb second, const char* second_words, const std::string& name) {
    Add(first, first_words, name);
    Add(second, second_words, name);
  }

  Task& task_;
  const Catalog& catalog_;
  std::map<std::string, std::uint16_t> receptacles_, others_;  // numbered names
  std::map<std::string, std::uint16_t> first_;                 // bare names of numbered types
  std::map<std::string, std::uint16_t> names_;
};

}  // namespace

void BuildActions(Task* task) { Builder(task).Build(); }

}  // namespace embodied_mem::eb_alfred
