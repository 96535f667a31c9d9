#include "envs/scienceworld/mix.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

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
    {{"blue paint", "red paint"},
     "Red and blue paint",
     "violet paint",
     "violetpaint",
     "violet",
     "liquid",
     0.2,
     0,
     10000,
     0.3,
     false},
    {{"red paint", "yellow paint"},
     "Yellow and red paint",
     "orange paint",
     "orangepaint",
     "orange",
     "liquid",
     0.2,
     0,
     10000,
     0.3,
     false},
    {{"blue paint", "yellow paint"},
     "Blue and yellow paint",
     "green paint",
     "greenpaint",
     "green",
     "liquid",
     0.2,
     0,
     10000,
     0.3,
     false},
};
const Recipe kAnyPaints = {{}, "The paints", "brown paint", "brownpaint", "brown", "liquid", 0.2, 0, 10000, 0.3, false};

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

const Recipe* RecipeOf(const World& world, const std::vector<Id>& inside) {
  std::vector<std::string> parts;
  for (const Id inner : inside) parts.push_back(world[inner].name);
  std::sort(parts.begin(), parts.end());
  const auto* found = std::find_if(std::begin(kRecipes), std::end(kRecipes),
                                   [&](const Recipe& recipe) { return recipe.parts == parts; });
  if (found != std::end(kRecipes)) return found;
  const bool paints =
      std::all_of(parts.begin(), parts.end(), [](const std::string& n) { return EndsWith(n, " paint"); });
  return paints ? &kAnyPaints : nullptr;
}

Thing Made(const Recipe& recipe) {
  const bool substance = recipe.name == std::string_view(recipe.substance);
  const bool paint = EndsWith(recipe.name, " paint");
  Thing made = Substance(recipe.name, substance ? Kind::kSubstance : Kind::kLiquid, recipe.color, recipe.state);
  if (paint) made.called = {"paint"};
  made.edible = recipe.edible;
  made.material.substance = recipe.substance;
  made.material.conductivity = recipe.conductivity;
  made.material.melts = recipe.melts;
  made.material.boils = recipe.boils;
  made.material.friction = recipe.friction;
  return made;
}

}  // namespace

std::string Mix(World* world, Id id) {
  const Thing& thing = (*world)[id];
  const std::size_t count = thing.inside.size() + (ShowsEnds(thing.kind) ? 2 : 0);
  if (thing.kind == Kind::kAgent) return "There is only one thing (inventory)";
  if (count == 0) return "That container is empty, so there are no items to mix.";
  if (count == 1) return "There is only one thing (" + (*world)[thing.inside[0]].name + ")";
  const std::vector<Id> inside = thing.inside;
  const Recipe* recipe = inside.empty() ? nullptr : RecipeOf(*world, inside);
  if (recipe == nullptr)
    return "Mixing the contents of the " + thing.name + (thing.burning ? " (on fire)" : "") +
           " does not appear to produce anything new.";
  for (const Id inner : inside) world->Remove(inner);
  world->Add(Made(*recipe), id);
  return std::string(recipe->said) + " mix to produce " + recipe->name + ".";
}

}  // namespace embodied_mem::scienceworld
