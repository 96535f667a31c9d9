#include "envs/scienceworld/mix.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "envs/scienceworld/say.h"
#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {
namespace {

// A mixture, and what it is made of: nothing else may be in the container.
struct Recipe {
  std::vector<std::string> parts;  // by name
  const char* said;
  const char* name;
  const char* substance;
  const char* color;
  const char* state;
  double conductivity, melts, boils, friction;
  bool edible;
};

const Recipe kRecipes[] = {
    {{"sodium chloride", "water"},
     "Sodium chloride and water",
     "salt water",
     "salt water",
     "white",
     "liquid",
     0.2,
     -2,
     110,
     0.15,
     false},
    {{"soap", "water"}, "Soap and water", "soapy water", "soapy water", "white", "liquid", 0.2, -1, 105, 0.06, false},
    {{"acetic acid", "sodium bicarbonate"},
     "Sodium bicarbonate and acetic acid",
     "sodium acetate",
     "sodium acetate",
     "clear",
     "solid",
     0.5,
     324,
     881,
     0.5,
     false},
    {{"almond", "cashew", "peanut"},
     "Peanuts, almonds, and cashews",
     "mixed nuts",
     "nut",
     "brown",
     "solid",
     0.5,
     10000,
     10001,
     0.5,
     true},
    {{"apple", "banana", "orange"},
     "Apples, oranges, and bananas",
     "fruit salad",
     "plant matter",
     "green",
     "solid",
     0.5,
     10000,
     10001,
     0.3,
     true},
};

// Two colors of paint, in the order of the answer, what it calls their mixture, and its color.
constexpr const char* kPaints[][4] = {
    {"red", "blue", "violet", "violet"},
    {"yellow", "red", "orange", "orange"},
    {"blue", "yellow", "green", "green"},
    {"yellow", "orange", "yellow-orange", "yellow-orange"},
    {"red", "orange", "red-orange", "red-orange"},
    {"violet", "red", "violet-red", "violet-red"},
    {"blue", "violet", "blue-violet", "blue-violet"},
    {"blue", "green", "blue green", "green-blue"},
    {"green", "yellow", "yellow-green", "yellow-green"},
};

Thing Paint(const std::string& color) {
  Thing paint = Substance((color + " paint").c_str(), Kind::kLiquid, color.c_str(), "liquid");
  paint.called = {"paint"};
  paint.material = {color + "paint", color, "liquid", 10, 0.2, 0, 10000, 0.3};
  return paint;
}

const Recipe* RecipeOf(const World& world, const std::vector<Id>& inside) {
  std::vector<std::string> parts;
  for (const Id inner : inside) parts.push_back(world[inner].name);
  std::sort(parts.begin(), parts.end());
  const auto* found = std::find_if(std::begin(kRecipes), std::end(kRecipes),
                                   [&](const Recipe& recipe) { return recipe.parts == parts; });
  if (found != std::end(kRecipes)) return found;
  return nullptr;
}

Thing Made(const Recipe& recipe) {
  const bool substance = recipe.name == std::string_view(recipe.substance);
  Thing made = Substance(recipe.name, substance ? Kind::kSubstance : Kind::kLiquid, recipe.color, recipe.state);
  made.edible = recipe.edible;
  made.material.substance = recipe.substance;
  made.material.conductivity = recipe.conductivity;
  made.material.melts = recipe.melts;
  made.material.boils = recipe.boils;
  made.material.friction = recipe.friction;
  return made;
}

// The color of a paint; empty for anything else.
std::string ColorOf(const std::string& name) {
  const std::size_t at = name.rfind(" paint");
  return at != std::string::npos && at + 6 == name.size() ? name.substr(0, at) : "";
}

// What paints mix to, and how that is said; nothing where they are none or one.
std::string MixPaints(const World& world, const std::vector<Id>& inside, Thing* product) {
  std::vector<std::string> colors;
  for (const Id inner : inside) colors.push_back(ColorOf(world[inner].name));
  const auto same = std::count(colors.begin(), colors.end(), colors[0]);
  if (std::count(colors.begin(), colors.end(), "") > 0 || same == static_cast<std::ptrdiff_t>(colors.size())) return {};
  for (const auto& row : kPaints) {
    if (colors.size() != 2) break;
    if (!(colors[0] == row[0] && colors[1] == row[1]) && !(colors[0] == row[1] && colors[1] == row[0])) continue;
    *product = Paint(row[3]);
    std::string said = std::string(row[0]) + " and " + row[1] + " paint mix to produce " + row[2] + " paint.";
    said[0] = static_cast<char>(said[0] - 'a' + 'A');
    return said;
  }
  *product = Paint("brown");
  return "The paints mix to produce brown paint.";
}

}  // namespace

std::string Mix(World* world, Id id) {
  const Thing& thing = (*world)[id];
  const std::vector<Id> inside = world->Sorted(id);
  const std::size_t count = inside.size() + (ShowsEnds(thing.kind) ? 2 : 0);
  if (count == 0 && thing.bare) return {};
  if (thing.kind == Kind::kAgent) return "There is only one thing (inventory)";
  if (count == 0) return "That container is empty, so there are no items to mix.";
  if (count == 1) return "There is only one thing (" + DisplayName(*world, inside[0]) + ")";
  const Recipe* recipe = RecipeOf(*world, inside);
  Thing product;
  std::string said;
  if (recipe != nullptr) {
    product = Made(*recipe);
    said = std::string(recipe->said) + " mix to produce " + recipe->name + ".";
  } else if (!inside.empty()) {
    said = MixPaints(*world, inside, &product);
  }
  if (said.empty())
    return "Mixing the contents of the " + DisplayName(*world, id) + " does not appear to produce anything new.";
  for (const Id inner : inside) world->Remove(inner);
  world->Add(std::move(product), id);
  return said;
}

}  // namespace embodied_mem::scienceworld
