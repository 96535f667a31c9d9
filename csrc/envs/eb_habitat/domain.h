// What is the same in every episode: places, articulated parts, categories, the 70 actions and their words.
//
// A Target is what one can navigate to: 5 articulated parts, then 11 receptacles; a receptacle's number is its target's
// less kNumParts. Everything here is constant and may be used from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace embodied_mem::eb_habitat {

constexpr std::size_t kNumParts = 5, kNumReceptacles = 11, kNumTargets = kNumParts + kNumReceptacles;
constexpr std::size_t kNumCategories = 33, kNumActions = 70;
constexpr std::uint8_t kNowhere = 0xFF;  // no target, no receptacle, no part

struct Target {
  std::string_view name;    // in the files
  std::string_view phrase;  // in actions
  std::string_view looks;   // in instructions
  std::uint8_t inside;      // of a receptacle: the part it is inside of, or kNowhere
  std::uint16_t serves;     // targets that the rule of groups puts in reach from here, as bits
};
extern const std::array<Target, kNumTargets> kTargets;
extern const std::array<std::string_view, kNumCategories> kCategories;

constexpr std::uint8_t kFridge = 4;  // the other parts are drawers
inline const Target& ReceptacleTarget(std::uint8_t receptacle) { return kTargets[kNumParts + receptacle]; }

enum class Verb : std::uint8_t { kNavigate, kPick, kPlace, kOpen, kClose };

struct Action {
  Verb verb;
  std::uint8_t argument;  // a target, a category, a receptacle, or a part
};
// Of ids 0 to kNumActions - 1.
Action ActionOf(int id);
std::string_view ActionText(int id);
// The id of an action given by its words or its number, blanks around it aside; -1 for anything else.
int FindAction(std::string_view text);

// Numbers by name, kNowhere for unknown names.
std::uint8_t FindTarget(std::string_view name);
std::uint8_t FindReceptacle(std::string_view name);
std::uint8_t FindPart(std::string_view name);
std::uint8_t FindCategory(std::string_view name);

}  // namespace embodied_mem::eb_habitat
