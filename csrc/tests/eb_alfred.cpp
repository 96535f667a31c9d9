// EB-ALFRED's core without Python: a counter, a cabinet and a fridge; an episode, threads, mutated files, no allocation.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "envs/eb_alfred/env.h"
#include "envs/vector_env.h"
#include "tests/allocations.h"
#include "tests/check.h"

namespace embodied_mem {
namespace {

using namespace eb_alfred;

std::string TypeText(const std::string& name, const std::string& flags) {
  std::string text = "\"" + name + "\":{";
  for (const char* flag : {"pickupable", "receptacle", "movable_receptacle", "openable", "toggleable", "sliceable"}) {
    if (text.back() != '{') text += ',';
    text += "\"" + std::string(flag) + "\":" + (flags.find(flag[0]) != std::string::npos ? "true" : "false");
  }
  return text + "}";
}

std::string PlaceText(const std::string& type, int x, bool openable) {
  return "{\"id\":\"" + type + "|+0" + std::to_string(x) + ".00|+01.00|+02.00\",\"type\":\"" + type + "\",\"pos\":[" +
         std::to_string(x) + ",1,2],\"openable\":" + (openable ? "true" : "false") +
         ",\"toggleable\":false,\"group\":" + std::to_string(x) + "}";
}

std::string CatalogText() {
  return "{\"types\":{" + TypeText("Apple", "ps") + "," + TypeText("AppleSliced", "p") + "," +
         TypeText("Cabinet", "ro") + "," + TypeText("CounterTop", "r") + "," + TypeText("Fridge", "ro") + "," +
         TypeText("Plate", "prm") + R"(},"action_names":{"find":["Apple","Cabinet","CounterTop","Fridge","Plate"],
"pick_up":["Apple","Plate"],"open_close":["Cabinet","Fridge"],"turn_on_off":[],"slice":["Apple"]},
"floorplans":{"FloorPlan1":{"receptacles":[)" +
         PlaceText("Cabinet", 1, true) + "," + PlaceText("Cabinet", 2, true) + "," + PlaceText("CounterTop", 4, false) +
         "," + PlaceText("Fridge", 6, true) + R"(],"fixtures":[],"standing":[[1,1],[2,1],[4,1],[6,1]]}},
"trials":{"t":{"floor_plan":"FloorPlan1","objects":[
{"id":"Apple|+04.00|+01.00|+02.10","type":"Apple","pos":[4,1,2.1],"in":["CounterTop|+04.00|+01.00|+02.00"]},
{"id":"Plate|+02.00|+01.00|+02.00","type":"Plate","pos":[2,1,2],"in":["Cabinet|+02.00|+01.00|+02.00"]}]}}})";
}

std::string TrialText() {
  return R"({"task_type":"pick_cool_then_place_in_recep","repeat_idx":0,
"pddl_params":{"object_target":"Apple","parent_target":"CounterTop","mrecep_target":"","toggle_target":"",
"object_sliced":false},"scene":{"object_poses":[{"objectName":"Apple_1"},{"objectName":"Plate_1"}],
"object_toggles":[],"init_action":{"x":1,"y":0.9,"z":1,"rotation":0}},
"turk_annotations":{"anns":[{"task_desc":"Cool an apple."}]}})";
}

std::shared_ptr<const Task> Load(const std::string& catalog, const std::string& trial) {
  return ReadTask(trial, "ann_0.json", ReadCatalog(catalog, "floorplans.json"), "t", "t", "");
}

const std::vector<std::string> kPlan = {
    "find a Apple",     "pick up the Apple", "find a Fridge",     "open the Fridge",   "put down the object in hand",
    "close the Fridge", "open the Fridge",   "pick up the Apple", "find a CounterTop", "put down the object in hand"};

TEST(Episode) {
  const auto task = Load(CatalogText(), TrialText());
  Env env;
  CHECK_THROWS(env.Step("find a Apple"), InternalError, "before the first Reset");
  CHECK_THROWS(env.Reset(nullptr, {}), InvalidInputError, "got none");
  Options patient;
  patient.max_invalid = kMaxInvalid + 1;
  CHECK_THROWS(env.Reset(task, patient), InvalidInputError, "expected 1 to 60000, got 60001");
  CHECK(!task->satisfied_at_start);
  std::string place = TrialText();  // the apple is on the counter, and this goal asks for no more
  place.replace(place.find("pick_cool_then_place_in_recep"), 29, "pick_and_place_simple");
  CHECK(Load(CatalogText(), place)->satisfied_at_start);
  env.Reset(task, {});
  std::string progress;
  for (const std::string& action : kPlan) {
    CHECK(!env.won());
    env.Step(action);
    CHECK(env.valid());
    progress += std::to_string(static_cast<int>(env.progress() * 3 + 0.5));
  }
  CHECK(env.won());
  CHECK_EQ(progress, "1000011113");  // on the counter; cooled; both
  env.Reset(task, {});
  env.Step("find a Plate");
  CHECK_EQ(env.observation(), "Last action executed successfully.\nIn view: Cabinet_2 (closed).\nIn hand: nothing.");
}

TEST(NoAllocation) {
  const auto task = Load(CatalogText(), TrialText());
  Env env;
  env.Reset(task, {});
  for (int round = 0; round < 3; ++round) {
    const std::size_t before = testing::allocated_bytes;
    for (std::size_t i = 0; i < 6; ++i) env.Step(kPlan[i]);
    env.Step("open the Cabinet");
    if (round == 2) CHECK_EQ(testing::allocated_bytes - before, std::size_t{0});  // the texts have grown by then
  }
}

TEST(Threads) {
  const auto task = Load(CatalogText(), TrialText());
  std::vector<std::string> seen[2];
  for (int run = 0; run < 2; ++run) {
    VectorEnv<Env> envs(16, 0, run == 0 ? 1 : 4);
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < 16; ++i) indices.push_back(i);
    envs.Reset(indices, std::vector<std::shared_ptr<const Task>>(16, task), std::vector<std::uint64_t>(16));
    std::mt19937_64 random(1);
    for (int step = 0; step < 100; ++step) {
      std::vector<std::string_view> actions;
      for (int i = 0; i < 16; ++i) actions.push_back(task->actions[random() % task->actions.size()].text);
      envs.Step(actions);
      for (std::size_t i = 0; i < 16; ++i) seen[run].push_back(envs.env(i).observation());
    }
    Options other;
    other.needs_knife = true;
    Env stranger;
    stranger.Reset(task, other);
    CHECK_THROWS(envs.Restore(0, stranger), InvalidInputError, "another setting");
  }
  CHECK(seen[0] == seen[1]);
}

TEST(Mutations) {
  std::mt19937_64 random(3);
  int played = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string files[2] = {CatalogText(), TrialText()};
    std::string& text = files[random() % 2];
    for (std::uint64_t edits = 1 + random() % 2; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + random() % 40); break;
        default: text.insert(at, text.substr(random() % text.size(), 1 + random() % 40));
      }
      if (text.empty()) text = " ";
    }
    try {
      const auto task = Load(files[0], files[1]);
      ++played;
      Env env;
      env.Reset(task, {});
      for (int step = 0; step < 30 && !task->actions.empty(); ++step)
        env.Step(task->actions[random() % task->actions.size()].text);
      CHECK(env.progress() >= 0 && env.progress() <= 1);
    } catch (const GameFileError&) {
      ++refused;
    }
  }
  CHECK(played > 100);
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace embodied_mem
