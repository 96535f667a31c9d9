#include "envs/eb_habitat/domain.h"

#include <string>
#include <unordered_map>

#include "core/text.h"

namespace embodied_mem::eb_habitat {
namespace {

constexpr std::uint16_t Bits(int a, int b) { return static_cast<std::uint16_t>((1U << a) | (1U << b)); }
constexpr std::uint16_t Bit(int a) { return static_cast<std::uint16_t>(1U << a); }

constexpr int kFirstPick = kNumTargets, kFirstPlace = kFirstPick + kNumCategories,
              kFirstDoor = kFirstPlace + kNumReceptacles;

// The words of a part when it is opened or closed; navigating to the refrigerator's says "push point".
std::string_view DoorPhrase(std::uint8_t part) { return part == kFridge ? "refrigerator" : kTargets[part].phrase; }

struct Words {
  std::array<std::string, kNumActions> texts;
  std::unordered_map<std::string_view, int> ids;

  Words() {
    for (int id = 0; id < static_cast<int>(kNumActions); ++id) {
      const Action action = ActionOf(id);
      std::string& text = texts[static_cast<std::size_t>(id)];
      switch (action.verb) {
        case Verb::kNavigate: text.append("navigate to the ").append(kTargets[action.argument].phrase); break;
        case Verb::kPick: text.append("pick up the ").append(kCategories[action.argument]); break;
        case Verb::kPlace: text.append("place at the ").append(ReceptacleTarget(action.argument).phrase); break;
        case Verb::kOpen: text.append("open the ").append(DoorPhrase(action.argument)); break;
        case Verb::kClose: text.append("close the ").append(DoorPhrase(action.argument)); break;
      }
    }
    for (int id = 0; id < static_cast<int>(kNumActions); ++id) ids.emplace(texts[static_cast<std::size_t>(id)], id);
  }
};

const Words& AllWords() {
  static const Words words;
  return words;
}

}  // namespace

const std::array<Target, kNumTargets> kTargets = {{
    {"cab_push_point_7", "cabinet 7", "left drawer", kNowhere, Bits(0, 14)},
    {"cab_push_point_6", "cabinet 6", "middle drawer", kNowhere, Bit(1)},
    {"cab_push_point_5", "cabinet 5", "right drawer", kNowhere, Bits(2, 15)},
    {"cab_push_point_4", "cabinet 4", "bottom drawer", kNowhere, Bit(3)},
    {"fridge_push_point", "refrigerator push point", "fridge", kNowhere, Bits(4, 13)},
    {"receptacle_aabb_Chr1_Top1_frl_apartment_chair_01", "chair 1", "chair", kNowhere, Bit(5)},
    {"receptacle_aabb_Tbl1_Top1_frl_apartment_table_01", "table 1", "black table", kNowhere, Bit(6)},
    {"receptacle_aabb_Tbl2_Top1_frl_apartment_table_02", "table 2", "brown table", kNowhere, Bit(7)},
    {"receptacle_aabb_TvStnd1_Top1_frl_apartment_tvstand", "TV stand", "TV stand", kNowhere, Bit(8)},
    {"receptacle_aabb_sink_kitchen_counter", "sink in the kitchen", "sink", kNowhere, Bit(9)},
    {"receptacle_aabb_counter_right_kitchen_counter", "right counter in the kitchen", "right counter", kNowhere,
     Bit(10)},
    {"receptacle_aabb_counter_left_kitchen_counter", "left counter in the kitchen", "left counter", kNowhere, Bit(11)},
    {"receptacle_aabb_Sofa_frl_apartment_sofa", "sofa", "sofa", kNowhere, Bit(12)},
    {"receptacle_aabb_middle_topfrl_apartment_refrigerator", "refrigerator", "fridge", kFridge, Bits(13, 4)},
    {"receptacle_aabb_drawer_left_top_frl_apartment_kitchen_counter", "left drawer of the kitchen counter",
     "left drawer", 0, Bits(14, 0)},
    {"receptacle_aabb_drawer_right_top_frl_apartment_kitchen_counter", "right drawer of the kitchen counter",
     "right drawer", 2, Bits(15, 2)},
}};

const std::array<std::string_view, kNumCategories> kCategories = {
    "ball",  "clamp", "hammer", "screwdriver", "padlock",      "scissors", "block",        "drill", "spatula",
    "knife", "spoon", "plate",  "sponge",      "cleanser",     "plum",     "pear",         "peach", "apple",
    "lemon", "can",   "box",    "banana",      "strawberry",   "lego",     "rubriks cube", "book",  "bowl",
    "cup",   "mug",   "orange", "lid",         "toy airplane", "wrench"};

Action ActionOf(int id) {
  const auto argument = [id](int first) { return static_cast<std::uint8_t>(id - first); };
  if (id < kFirstPick) return {Verb::kNavigate, argument(0)};
  if (id < kFirstPlace) return {Verb::kPick, argument(kFirstPick)};
  if (id < kFirstDoor) return {Verb::kPlace, argument(kFirstPlace)};
  if (id < kFirstDoor + 2) return {id == kFirstDoor ? Verb::kOpen : Verb::kClose, kFridge};
  if (id < kFirstDoor + 6) return {Verb::kOpen, argument(kFirstDoor + 2)};
  return {Verb::kClose, argument(kFirstDoor + 6)};
}

std::string_view ActionText(int id) { return AllWords().texts[static_cast<std::size_t>(id)]; }

int FindAction(std::string_view text) {
  text = StripLikePython(text);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() == 1 && is_digit(text[0])) return text[0] - '0';
  if (text.size() == 2 && is_digit(text[0]) && is_digit(text[1])) {
    const int id = 10 * (text[0] - '0') + (text[1] - '0');
    return id < static_cast<int>(kNumActions) ? id : -1;
  }
  const auto found = AllWords().ids.find(text);
  return found == AllWords().ids.end() ? -1 : found->second;
}

std::uint8_t FindTarget(std::string_view name) {
  for (std::size_t t = 0; t < kNumTargets; ++t) {
    if (kTargets[t].name == name) return static_cast<std::uint8_t>(t);
  }
  return kNowhere;
}

std::uint8_t FindReceptacle(std::string_view name) {
  const std::uint8_t target = FindTarget(name);
  return target == kNowhere || target < kNumParts ? kNowhere : static_cast<std::uint8_t>(target - kNumParts);
}

std::uint8_t FindPart(std::string_view name) {
  const std::uint8_t target = FindTarget(name);
  return target < kNumParts ? target : kNowhere;
}

std::uint8_t FindCategory(std::string_view name) {
  for (std::size_t c = 0; c < kNumCategories; ++c) {
    if (kCategories[c] == name) return static_cast<std::uint8_t>(c);
  }
  return kNowhere;
}

}  // namespace embodied_mem::eb_habitat
