#include "envs/scienceworld/tick.h"

#include <string_view>

#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {
namespace {

constexpr Stage kMammal[] = {{"baby", 20}, {"juvenile", 20}, {"adult", 50}, {"dead", 0}};
constexpr Stage kEggLayer[] = {{"egg", 20}, {"hatchling", 20}, {"juvenile", 20}, {"adult", 50}, {"dead", 0}};
constexpr Stage kAmphibian[] = {{"egg", 20}, {"tadpole", 20}, {"adult", 50}, {"dead", 0}};
constexpr Stage kButterfly[] = {{"egg", 20}, {"caterpillar", 20}, {"pupa", 20}, {"adult", 50}, {"dead", 0}};
constexpr Stage kBee[] = {{"adult", 0}, {"dead", 0}};
constexpr Stage kPlant[] = {{"seed", 0},  {"seedling", 0},    {"juvenile", 0},
                            {"adult", 3}, {"reproducing", 0}, {"dead", 0}};

struct Row {
  const Stage* stages;
  int count;
};

Row RowOf(const Thing& thing) {
  if (thing.kind == Kind::kPlant) return {kPlant, 6};
  const std::string_view life = thing.life;
  if (life == "baby") return {kMammal, 4};
  if (life == "bee") return {kBee, 2};
  if (life == "amphibian") return {kAmphibian, 4};
  if (life == "butterfly") return {kButterfly, 5};
  return {kEggLayer, 5};
}

void GrowAnimal(Thing* thing) {
  const Row row = RowOf(*thing);
  const int limit = row.stages[thing->stage].ticks;
  if (limit == 0) return;
  if (thing->stage_ticks++ < limit) return;
  thing->stage_ticks = 1;
  if (++thing->stage == row.count - 1) thing->dead = true;
}

Thing Substance(const char* name, Kind kind, const char* color, const char* state) {
  Thing thing;
  thing.kind = kind;
  thing.name = name;
  thing.movable = thing.has_material = true;
  thing.material = {name, color, state, 10, 0.5, 0, 100, 0};
  if (kind == Kind::kSubstance) thing.called = {"substance"};
  return thing;
}

bool Holds(const World& world, Id id, std::string_view name) {
  for (const Id inner : world[id].inside)
    if (world[inner].name == name) return true;
  return false;
}

void Fill(World* world, Id id) {
  if (!Holds(*world, id, "water")) world->Add(Substance("water", Kind::kSubstance, "clear", "liquid"), id);
}

// What is liquid in a basin runs off while its drain is open.
void RunOff(World* world, Id basin) {
  const std::vector<Id> inside = (*world)[basin].inside;
  for (const Id inner : inside)
    if ((*world)[inner].has_material && (*world)[inner].material.state == "liquid") world->Remove(inner);
}

constexpr int kReproducing = 4;
constexpr int kReproducesAt = 5, kFlowersAt = 5, kSickAt = 30, kDiesAt = 55;  // ticks: all, since, dry, dry

void GrowPlant(World* world, Id id) {
  {
    Thing& plant = (*world)[id];
    ++plant.stage_ticks;
    if (plant.stage == kDeadPlant) {
      if (plant.dead) return;
      plant.dead = true;
      const std::vector<Id> flowers = plant.inside;
      const Id pot = plant.parent;
      for (const Id flower : flowers) {
        const std::vector<Id> pollen = (*world)[flower].inside;
        for (const Id grain : pollen) world->Move(grain, pot);
        world->Remove(flower);
      }
      return;
    }
    const bool water = plant.parent != kNone && Holds(*world, plant.parent, "water");
    plant.dry_ticks = water ? 0 : plant.dry_ticks + 1;
    plant.sick = plant.dry_ticks >= kSickAt;
    if (plant.dry_ticks >= kDiesAt) {
      plant.stage = kDeadPlant;
      plant.stage_ticks = 0;
      return;
    }
    if (plant.stage == kReproducing - 1 && plant.stage_ticks >= kReproducesAt) {
      plant.stage = kReproducing;
      plant.stage_ticks = 0;
    }
    if (plant.stage != kReproducing || plant.stage_ticks != kFlowersAt) return;
  }
  Thing flower = Substance("flower", Kind::kFlower, "purple", "solid");
  flower.container = flower.open = true;
  flower.words = (*world)[id].flower;
  const Id at = world->Add(std::move(flower), id);
  world->Add(Substance("pollen", Kind::kPollen, "yellow", "solid"), at);
}

}  // namespace

const Stage* StagesOf(const Thing& thing) { return RowOf(thing).stages; }
int NumStages(const Thing& thing) { return RowOf(thing).count; }

void Tick(World* world) {
  ++world->ticks;
  const std::size_t count = world->things.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Id id = static_cast<Id>(i);
    Thing& thing = world->things[i];
    if (thing.gone) continue;
    if (thing.kind == Kind::kAnimal) GrowAnimal(&thing);
    if (thing.kind == Kind::kStopwatch && thing.active) ++thing.ticks;
    const bool runs = thing.kind == Kind::kSink && thing.active;
    if (thing.fills || runs) Fill(world, id);
    if (world->things[i].kind == Kind::kPlant) GrowPlant(world, id);
  }
  for (const Id drain : world->drains)
    if (world->ticks == 1 && world->things[static_cast<std::size_t>((*world)[drain].parent)].kind == Kind::kToilet)
      (*world)[drain].open = false;
  for (const Id drain : world->drains)
    if ((*world)[drain].open) RunOff(world, (*world)[drain].parent);
}

}  // namespace embodied_mem::scienceworld
