#include "envs/scienceworld/tick.h"

#include <algorithm>
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

void GrowAnimal(World* world, Id id) {
  Thing* const thing = &(*world)[id];
  const Row row = RowOf(*thing);
  const int limit = row.stages[thing->stage].ticks;
  if (thing->stage == row.count - 1) world->LoseEnds(id);
  if (limit == 0) return;
  if (++thing->stage_ticks < limit) return;
  thing->stage_ticks = 0;
  ++thing->stage;
}

Id Find(const World& world, Id id, std::string_view name) {
  for (const Id inner : world[id].inside)
    if (world[inner].name == name) return inner;
  return kNone;
}

bool Holds(const World& world, Id id, std::string_view name) { return Find(world, id, name) != kNone; }

void Fill(World* world, Id id) {
  const std::vector<Id>& inside = (*world)[id].inside;
  if (std::none_of(inside.begin(), inside.end(),
                   [&](Id inner) { return (*world)[inner].material.substance == "water"; }))
    world->Add(Substance("water", Kind::kSubstance, "clear", "liquid"), id);
}

// What is liquid in a basin runs off into the sewer.
void RunOff(World* world, Id basin) {
  const std::vector<Id> inside = (*world)[basin].inside;
  for (const Id inner : inside)
    if ((*world)[inner].has_material && (*world)[inner].material.state == "liquid") {
      if (world->sewer != kNone) world->Move(inner, world->sewer);
      else world->Remove(inner);
    }
}

// Each of two things that touch comes nearer to the other's temperature, the second first.
void Touch(double share, double* first, double* second) {
  *second += (*first - *second) * share;
  *first += (*second - *first) * share;
}

// What a tick needs beside the world, kept to spare allocations.
struct Scratch {
  std::vector<Id> turns;                // of all things under way, what is in them
  std::vector<double> celsius, shares;  // of things that touch
};

constexpr std::size_t kRows = 8;

// Each thing touches all after it. Eight take the others together: a sewer holds hundreds, and one thing alone would
// wait for its own last touch; the order of every two is the same.
void TouchAll(const std::vector<double>& shares, std::vector<double>* celsius) {
  const std::size_t count = shares.size();
  double* const c = celsius->data();
  const double* const s = shares.data();
  for (std::size_t first = 0; first < count; first += kRows) {
    const std::size_t next = std::min(first + kRows, count);
    for (std::size_t i = first; i < next; ++i)
      for (std::size_t k = i + 1; k < next; ++k) Touch(std::min(s[i], s[k]), &c[i], &c[k]);
    if (next == count) return;
    double rows[kRows];
    std::copy_n(c + first, kRows, rows);
    for (std::size_t k = next; k < count; ++k) {
      double other = c[k];
      for (std::size_t i = 0; i < kRows; ++i) Touch(std::min(s[first + i], s[k]), &rows[i], &other);
      c[k] = other;
    }
    std::copy_n(rows, kRows, c + first);
  }
}

constexpr double kOfSource = 0.1;

// Heat goes between a thing and what is in it, then among these.
void Conduct(World* world, Id id, Scratch* scratch) {
  Thing& outer = (*world)[id];
  std::vector<double>&celsius = scratch->celsius, &shares = scratch->shares;
  celsius.clear(), shares.clear();
  bool equal = true;
  for (const Id inner : outer.inside) {
    Thing& thing = (*world)[inner];
    if (!thing.has_material) continue;
    const double source = outer.heats ? outer.heats_to : outer.cools_to, more = source - thing.material.celsius;
    if (outer.active && ((outer.heats && more > 0) || (!outer.heats && outer.cools && more < 0)))
      thing.material.celsius += more * kOfSource;
    const double share = thing.material.conductivity / 10;
    if (outer.has_material)
      Touch(std::min(share, outer.material.conductivity / 10), &thing.material.celsius, &outer.material.celsius);
    celsius.push_back(thing.material.celsius), shares.push_back(share);
    equal = equal && celsius.back() == celsius.front();
  }
  if (equal) return;  // much water in a sewer
  TouchAll(shares, &celsius);
  std::size_t at = 0;
  for (const Id inner : outer.inside)
    if (Thing& thing = (*world)[inner]; thing.has_material) thing.material.celsius = celsius[at++];
}

// A thing that melts, freezes or boils is called by its substance.
void ChangeState(Thing* thing) {
  Material& material = thing->material;
  const char* state = material.celsius < material.melts   ? "solid"
                      : material.celsius > material.boils ? "gas"
                                                          : "liquid";
  if (material.state[0] == state[0]) return;
  material.state = state;
  if (material.state == thing->born_state) {
    thing->name = thing->born_name;
    return;
  }
  const char* begin = material.state == "gas" ? "gaseous " : material.state == "liquid" ? "liquid " : "solid ";
  thing->name = begin + material.substance;
  if (material.substance == "water") thing->name = material.state == "gas" ? "steam" : "ice";
}

constexpr int kReproducing = 4;
constexpr int kReproducesAt = 5, kFlowersEvery = 5, kSickAt = 25, kDiesAt = 50, kSickBareAt = 2,
              kDiesBareAt = 5;  // ticks: all, since, dry, dry, without soil

Thing Pollen(const Thing& from) {
  Thing pollen = Substance("pollen", Kind::kPollen, "yellow", "solid");
  pollen.words = from.pollen_of + "pollen";
  pollen.called = {from.pollen_of + " pollen"};
  pollen.shut = true;
  pollen.material.substance = "pollen matter";
  pollen.material.melts = 10000, pollen.material.boils = 10001;
  return pollen;
}

void GrowPlant(World* world, Id id) {
  {
    Thing& plant = (*world)[id];
    plant.name = plant.born_name = plant.life;
    if (plant.stage == kDeadPlant) {
      ++plant.stage_ticks;
      const std::vector<Id> inside = plant.inside;
      const Id pot = plant.parent;
      world->LoseEnds(id);
      for (const Id inner : inside) {
        if ((*world)[inner].kind != Kind::kFlower) {
          world->Move(inner, pot);
          continue;
        }
        world->Move(inner, pot);
        world->LoseEnds(inner);
        const std::vector<Id> pollen = (*world)[inner].inside;
        for (const Id grain : pollen) world->Move(grain, pot);
        world->Remove(inner);
      }
      return;
    }
    const bool soil = plant.parent != kNone && Holds(*world, plant.parent, "soil");
    const Id water = plant.parent != kNone ? Find(*world, plant.parent, "water") : kNone;
    plant.dry_ticks = water != kNone ? 0 : plant.dry_ticks + 1;
    if (water != kNone) world->Remove(water);  // drunk
    plant.bare_ticks = soil ? 0 : plant.bare_ticks + 1;
    if (soil) ++plant.stage_ticks;
    plant.sick = plant.dry_ticks >= kSickAt || plant.bare_ticks >= kSickBareAt;
    if (plant.dry_ticks >= kDiesAt || plant.bare_ticks >= kDiesBareAt) {
      plant.stage = kDeadPlant;
      plant.stage_ticks = 0;
      return;
    }
    if (soil && plant.stage == kReproducing - 1 && plant.stage_ticks >= kReproducesAt) {
      plant.stage = kReproducing;
      plant.stage_ticks = plant.dry_ticks = 0;
    }
    const bool flowers = plant.stage == kReproducing && plant.stage_ticks > 0 && plant.stage_ticks % kFlowersEvery == 0;
    if (!flowers || !soil || plant.sick || Holds(*world, id, "flower")) return;
  }
  Thing flower = Substance("flower", Kind::kFlower, "purple", "solid");
  flower.container = flower.open = true;
  flower.words = (*world)[id].flower;
  flower.pollen_of = (*world)[id].pollen_of;
  flower.material.substance = "flower matter";
  flower.material.melts = 10000, flower.material.boils = 10001;
  Thing pollen = Pollen((*world)[id]);
  const Id at = world->Add(std::move(flower), id);
  world->Add(std::move(pollen), at);
}

void Flowers(const World& world, Id id, std::vector<Id>* found) {
  if (world[id].kind == Kind::kFlower) found->push_back(id);
  if (id == world.agent || !world[id].open) return;
  for (const Id inner : world[id].inside) Flowers(world, inner, found);
}

constexpr std::size_t kCarries = 6;  // pollen

// A bee leaves or stays by one draw; where it goes is another, where there is a choice.
void Fly(World* world, Id id) {
  const bool low = world->Share() < 0.5;
  const Id outer = (*world)[id].parent;
  const Kind kind = (*world)[outer].kind;
  const Id room = world->RoomOf(id);
  if (kind == Kind::kFlower) {
    if (!low) return world->Move(id, room);
    std::vector<Id> pollen;
    for (const Id inner : (*world)[outer].inside)
      if ((*world)[inner].kind == Kind::kPollen) pollen.push_back(inner);
    if (pollen.empty() || (*world)[id].inside.size() >= kCarries) return;
    world->Move(pollen[world->Pick(pollen.size())], id);
    return;
  }
  std::vector<Id> ways;
  if (low) {
    for (const Id door : world->DoorsOf(outer))
      if ((*world)[door].open) ways.push_back((*world)[door].leads);
    const Id drain = (*world)[outer].drain;
    if (drain != kNone && (*world)[drain].open && world->sewer != kNone) ways.push_back(world->sewer);
    if (ways.empty() && kind != Kind::kRoom && kind != Kind::kUniverse && (*world)[outer].open)
      return world->Move(id, room == kNone ? world->universe : room);
  } else {
    Flowers(*world, outer, &ways);
  }
  if (!ways.empty()) world->Move(id, ways[world->Pick(ways.size())]);
}

// A flower makes new pollen once its own is taken.
void MakePollen(World* world, Id id) {
  for (const Id inner : (*world)[id].inside)
    if ((*world)[inner].kind == Kind::kPollen) return;
  world->Add(Pollen((*world)[id]), id);
}

constexpr int kFlushes = 5, kBurns = 100;  // ticks
constexpr double kFireIsHotterBy = 200, kQuenchedIsColderBy = 10, kNothingBurnsBelow = 200;

// Liquid water in a thing or beside it.
Id WaterAt(const World& world, Id id) {
  for (const Id outer : {id, world[id].parent})
    for (const Id inner : outer == kNone ? std::vector<Id>{} : world[outer].inside)
      if (world[inner].name == "water" && world[inner].material.state == "liquid") return inner;
  return kNone;
}

// Whether fire may matter to a thing.
bool IsHot(const Thing& thing) {
  return thing.has_material && (thing.burning || thing.material.celsius >= kNothingBurnsBelow);
}

// Fire burns a thing to ash; returns false once it is gone.
bool Burn(World* world, Id id) {
  Thing& thing = (*world)[id];
  const double at = BurnsAt(thing);
  if (at == 0) return true;
  if (!thing.burning && thing.material.celsius < at) return true;
  thing.burning = thing.burned = true;
  thing.material.celsius = std::max(thing.material.celsius, at + kFireIsHotterBy);
  if (const Id water = WaterAt(*world, id); water != kNone) {
    (*world)[water].material.celsius = thing.material.celsius;
    thing.material.celsius = at - kQuenchedIsColderBy;
    thing.burning = false;
    ++thing.burnt;
    return true;
  }
  if (++thing.burnt < kBurns) return true;
  Thing ash = Substance("ash", Kind::kSubstance, "gray", "solid");
  ash.burned = true;
  ash.material.celsius = thing.material.celsius;
  ash.material.melts = 10000, ash.material.boils = 10001;
  const Id outer = thing.parent;
  const std::vector<Id> inside = thing.inside;
  world->Add(std::move(ash), outer);
  for (const Id inner : inside) world->Move(inner, outer);
  world->Remove(id);
  return false;
}

void TickThing(World* world, Id id, Scratch* scratch) {
  if ((*world)[id].kind == Kind::kGround) {  // what was put into it comes to lie on it, and misses a tick
    const std::vector<Id> inside = (*world)[id].inside;
    world->LoseEnds(id);
    for (const Id inner : inside) world->Move(inner, (*world)[id].parent);
  }
  if (IsHot((*world)[id]) && !Burn(world, id)) return;
  {
    if ((*world)[id].kind == Kind::kAnimal) GrowAnimal(world, id);
    Thing& thing = (*world)[id];
    if (thing.kind == Kind::kStopwatch && thing.active) ++thing.ticks;
    if (thing.kind == Kind::kPlane)
      for (const Id inner : thing.inside) ++(*world)[inner].slid;
    const bool runs = thing.kind == Kind::kSink && thing.active;
    const bool flushes = thing.kind == Kind::kToilet && (thing.active || thing.ticks > 0);
    if (thing.fills || runs || flushes) Fill(world, id);
    if (runs || flushes) {
      const std::vector<Id> inside = (*world)[id].inside;
      for (const Id inner : inside)
        if ((*world)[inner].container && (*world)[inner].open) Fill(world, inner);
    }
  }
  if ((*world)[id].kind == Kind::kPlant) GrowPlant(world, id);
  if ((*world)[id].kind == Kind::kFlower) MakePollen(world, id);
  if ((*world)[id].kind == Kind::kAnimal && (*world)[id].life == "bee") {
    if ((*world)[id].ticked == world->ticks) return;
    (*world)[id].ticked = world->ticks;
    Fly(world, id);
  }
  Conduct(world, id, scratch);
  if ((*world)[id].kind == Kind::kToilet) {
    Thing& toilet = (*world)[id];
    const bool flushed = toilet.ticks > 0;
    if (toilet.active || flushed) ++toilet.ticks;
    if (toilet.ticks == kFlushes) toilet.ticks = 0, toilet.active = false;
    if (toilet.drain != kNone && !(flushed && toilet.ticks > 0)) (*world)[toilet.drain].open = toilet.ticks > 0;
  }
  std::vector<Id>& turns = scratch->turns;
  const std::size_t first = turns.size();
  turns.insert(turns.end(), (*world)[id].inside.begin(), (*world)[id].inside.end());
  const std::size_t last = turns.size();
  for (std::size_t turn = first; turn < last; ++turn)
    if (const Id inner = turns[turn]; !(*world)[inner].gone) TickThing(world, inner, scratch);
  turns.resize(first);
  if (const Id drain = (*world)[id].drain; drain != kNone && (*world)[drain].open) RunOff(world, id);
  if ((*world)[id].has_material) ChangeState(&(*world)[id]);
}

}  // namespace

Thing Substance(const char* name, Kind kind, const char* color, const char* state) {
  Thing thing;
  thing.kind = kind;
  thing.name = thing.born_name = name;
  thing.movable = thing.has_material = true;
  thing.material = {name, color, state, 10, 0.5, 0, 100, 0};
  thing.born_state = state;
  if (kind == Kind::kSubstance) thing.called = {"substance"};
  return thing;
}

double BurnsAt(const Thing& thing) {
  if (!thing.has_material) return 0;
  const std::string& substance = thing.material.substance;
  if (substance == "wood") return 350;
  if (substance == "paper") return 210;
  if (substance == "cloth") return 300;
  if (substance == "soap") return 537;
  if (substance == "plant matter" || substance == "flower matter" || substance == "pollen matter") return 200;
  return substance.size() > 5 && substance.compare(substance.size() - 5, 5, "paint") == 0 ? 293 : 0;
}

const Stage* StagesOf(const Thing& thing) { return RowOf(thing).stages; }
int NumStages(const Thing& thing) { return RowOf(thing).count; }

void Tick(World* world) {
  ++world->ticks;
  world->spare.insert(world->spare.end(), world->spent.begin(), world->spent.end());
  world->spent.clear();
  Scratch scratch;
  scratch.turns.reserve(world->things.size());
  TickThing(world, world->universe, &scratch);
}

}  // namespace embodied_mem::scienceworld
