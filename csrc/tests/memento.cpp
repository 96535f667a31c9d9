// MEMENTO's world without Python: a task played to its end, random actions, bad and mutated files, threads.
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "envs/memento/env.h"
#include "envs/vector_env.h"
#include "tests/check.h"

namespace embodied_mem {
namespace {

using namespace memento;

const std::string kScenes = R"json({"small": {
  "rooms": [
    {"name": "kitchen_1", "type": "kitchen", "floor_points": [[0, 0, 0], [0.5, 0, 0]]},
    {"name": "bedroom_1", "type": "bedroom", "floor_points": [[10, 0, 0]]},
    {"name": "unknown_room", "type": "unknown", "floor_points": []}],
  "floors": [{"name": "floor_kitchen_1", "room": "kitchen_1"}, {"name": "floor_bedroom_1", "room": "bedroom_1"}],
  "furniture": [
    {"name": "table_3", "type": "table", "sim_handle": "t", "room": "kitchen_1", "translation": [3, 0.5, 4],
     "is_articulated": false, "components": [], "receptacles": [{"relation": "on", "sim_handle": "t|on"}]},
    {"name": "bed_4", "type": "bed", "sim_handle": "b", "room": "bedroom_1", "translation": [12, 0.5, 0],
     "is_articulated": false, "components": ["faucet"], "receptacles": [{"relation": "on", "sim_handle": "b|on"}]},
    {"name": "cabinet_5", "type": "cabinet", "sim_handle": "c", "room": "unknown_room", "translation": [20, 0.5, 0],
     "is_articulated": true, "components": [], "receptacles": [{"relation": "within", "sim_handle": "c|in"}]}]}})json";

const std::string kEpisodes = R"json({"episodes": [{
  "episode_id": "1", "scene_id": "small", "instruction": "Bring the cup and the book to bed.",
  "rigid_objs": [["Cup", [[1, 0, 0, 3], [0, 1, 0, 0.5], [0, 0, 1, 4.2], [0, 0, 0, 1]]],
                 ["Book", [[1, 0, 0, 3.1], [0, 1, 0, 0.5], [0, 0, 1, 4], [0, 0, 0, 1]]]],
  "name_to_receptacle": {"Cup_:0000": "t|on", "Book_:0000": "t|on"},
  "evaluation_propositions": [
    {"function_name": "is_on_top", "args": {"object_handles": ["Cup_:0000"], "receptacle_handles": ["b"], "number": 1}},
    {"function_name": "is_on_top", "args": {"object_handles": ["Book_:0000"], "receptacle_handles": ["b"],
        "number": 1}},
    {"function_name": "is_next_to", "args": {"entity_handles_a": ["Cup_:0000"], "entity_handles_b": ["Book_:0000"],
     "number": 1, "l2_threshold": 1.0}}],
  "evaluation_proposition_dependencies": [{"proposition_indices": [2], "depends_on": [0, 1],
     "relation_type": "while_satisfied", "dependency_mode": "any"}],
  "evaluation_constraints": [
    {"type": "TemporalConstraint", "args": {"dag_edges": [[0, 1]]}},
    {"type": "TerminalSatisfactionConstraint", "args": {"proposition_indices": [0, 1, 2]}}]}]})json";

std::shared_ptr<const Task> Load(const std::string& scenes, const std::string& episodes) {
  const Labels labels = {{"Cup", {"cup", "A cup.", true}}, {"Book", {"book", "", false}}};
  const auto tasks = ReadTasks(episodes, "episodes", ReadHouses(scenes, "scenes"), labels, {});
  return tasks.empty() ? nullptr : tasks[0];
}

std::string RandomAction(std::mt19937_64& random) {
  static const std::vector<std::string> things = {
      "cup_0",           "book_1",    "table_3",      "bed_4", "cabinet_5", "floor_kitchen_1",
      "floor_bedroom_1", "kitchen_1", "unknown_room", "None",  "",          "next_to"};
  static const std::vector<std::string> tools = {"Navigate",       "Explore",
                                                 "Pick",           "Place",
                                                 "Open",           "Close",
                                                 "FindObjectTool", "FindReceptacleTool",
                                                 "FindRoomTool",   "DescribeObjectTool",
                                                 "Fill",           "Jump"};
  const auto thing = [&] { return things[random() % things.size()]; };
  const std::string tool = tools[random() % tools.size()];
  if (tool != "Place") return tool + "[" + thing() + "]";
  return "Place[" + thing() + (random() % 2 ? ", on, " : ", within, ") + thing() +
         (random() % 2 ? ", None, None]" : ", next_to, " + thing() + "]");
}

TEST(Task) {
  const auto task = Load(kScenes, kEpisodes);
  Env env;
  CHECK_THROWS(env.Step("Wait[]"), InternalError, "before the first Reset");
  CHECK_THROWS(env.Reset(nullptr, {}, 0), InvalidInputError, "got none");
  env.Reset(task, {}, 7);
  for (const char* action : {"Explore[kitchen_1]", "Navigate[cup_0]", "Pick[cup_0]", "Navigate[bed_4]",
                             "Place[cup_0, on, bed_4, None, None]", "Navigate[book_1]", "Pick[book_1]",
                             "Navigate[bed_4]", "Thought: done soon.\nPlace[book_1, on, bed_4, next_to, cup_0]"}) {
    CHECK(!env.won());
    env.Step(action);
    CHECK_EQ(env.response(), "Successful execution!");
  }
  CHECK(env.won());
  CHECK(env.observation().find("cup_0: bed_4 in bedroom_1") != std::string::npos);
  env.Step("Done[]");
  CHECK(env.ended());
}

TEST(Threads) {
  const auto task = Load(kScenes, kEpisodes);
  std::vector<std::string> seen[2];
  for (int run = 0; run < 2; ++run) {
    VectorEnv<Env> envs(16, 0, run == 0 ? 1 : 4);
    std::vector<std::size_t> indices;
    std::vector<std::uint64_t> seeds;
    for (std::size_t i = 0; i < 16; ++i) indices.push_back(i), seeds.push_back(i);
    CHECK_THROWS(envs.Step(std::vector<std::string_view>(16)), InvalidInputError, "never reset");
    envs.Reset(indices, std::vector<std::shared_ptr<const Task>>(16, task), seeds);
    CHECK_THROWS(envs.Reset({0, 0}, {task, task}, {1, 2}), InvalidInputError, "twice");
    CHECK_THROWS(envs.Step({}), InvalidInputError, "got 0");
    std::mt19937_64 random(1);
    for (int step = 0; step < 200; ++step) {
      std::vector<std::string> actions;
      for (int i = 0; i < 16; ++i) actions.push_back(RandomAction(random));
      envs.Step(std::vector<std::string_view>(actions.begin(), actions.end()));
      for (std::size_t i = 0; i < 16; ++i) seen[run].push_back(envs.env(i).observation());
    }
  }
  CHECK(seen[0] == seen[1]);
}

TEST(Mutations) {
  CHECK_THROWS(ReadHouses("{", "scenes.json"), GameFileError, "scenes.json: line 1, column 2");
  CHECK_THROWS(Load(R"({"small": {"rooms": [], "floors": [], "furniture": []}})", kEpisodes), GameFileError,
               "nobody can stand");
  std::mt19937_64 random(2);
  int played = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string files[2] = {kScenes, kEpisodes};
    std::string& text = files[random() % 2];
    for (std::uint64_t edits = 1 + random() % 2; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + random() % 40); break;
        case 2: text.insert(at, text.substr(random() % text.size(), 1 + random() % 40)); break;
        default:
          if (text[at] >= '0' && text[at] <= 'z') text[at] = static_cast<char>('0' + random() % 10);
      }
      if (text.empty()) text = " ";
    }
    std::shared_ptr<const Task> task;
    try {
      task = Load(files[0], files[1]);
    } catch (const GameFileError&) {
      ++refused;
      continue;
    }
    if (task == nullptr) continue;
    ++played;
    Env env;
    env.Reset(task, {}, random());
    for (int step = 0; step < 30; ++step) env.Step(RandomAction(random));
    CHECK(env.progress() >= 0 && env.progress() <= 1);
  }
  CHECK(played > 100);
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace embodied_mem
