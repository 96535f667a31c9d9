// EB-Habitat's world without Python: a task played to its end, refusals, goal trees, reach by distance, bad and mutated
// files.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "envs/eb_habitat/env.h"
#include "tests/check.h"

namespace embodied_mem {
namespace {

using namespace eb_habitat;

const std::string kTable = "receptacle_aabb_Tbl1_Top1_frl_apartment_table_01";
const std::string kSofa = "receptacle_aabb_Sofa_frl_apartment_sofa";
const std::string kDrawer = "receptacle_aabb_drawer_left_top_frl_apartment_kitchen_counter";

// A cup on table 1 (2 m long, 1 m deep) to the sofa, which stands 6 m away; two more cups lie on the table's two ends.
std::string Episodes(const std::string& goal) {
  return R"json({"episodes": [{"id": "t/0", "scene": "flat", "instruction": "Move a cup to the sofa.",
    "initial_articulated": {"fridge_push_point": "open", "cab_push_point_7": "closed"},
    "goal": )json" +
         goal + R"json(, "subgoals_symbolic": [[["robot_at", ")json" + kTable + R"json("]], [["holding", "a_cup"]],
      [["on_top", "a_cup", ")json" +
         kSofa + R"json("]]],
    "objects": [
      {"handle": "a_cup", "category": "cup", "receptacle": ")json" +
         kTable + R"json(", "pos": [0, 0.8, 0.1]},
      {"handle": "b_cup", "category": "cup", "receptacle": ")json" +
         kTable + R"json(", "pos": [0.9, 0.8, 0.4]},
      {"handle": "c_cup", "category": "cup", "receptacle": ")json" +
         kTable + R"json(", "pos": [-0.9, 0.8, -0.4]},
      {"handle": "d_apple", "category": "apple", "receptacle": ")json" +
         kSofa + R"json(",
       "pos": [0, 0.4, 6]}]}]})json";
}

const std::string kScenes = R"json({"scenes": {"flat": {"receptacle_boxes_from_objects": {
  "receptacle_aabb_Tbl1_Top1_frl_apartment_table_01": {"min": [-1, 0.7, -0.5], "max": [1, 0.9, 0.5]},
  "receptacle_aabb_Sofa_frl_apartment_sofa": {"min": [-1, 0.4, 5.5], "max": [1, 0.5, 6.5]}}}}})json";

const std::string kCupOnSofa = R"json({"op": "AND", "quantifier": "EXISTS", "vars": [{"name": "X", "category": "cup"}],
  "args": [{"pred": "on_top", "args": ["X", "receptacle_aabb_Sofa_frl_apartment_sofa"]},
           {"pred": "not_holding", "args": []}]})json";

std::shared_ptr<const Task> Load(const std::string& goal) {
  return ReadTasks(Episodes(goal), "episodes", ReadScenes(kScenes, "scenes"))[0];
}

TEST(Actions) {
  CHECK_EQ(FindAction(" navigate to the refrigerator push point\n"), 4);
  CHECK_EQ(FindAction("navigate to the refrigerator"), 13);
  CHECK_EQ(FindAction("pick up the toy airplane"), 47);
  CHECK_EQ(FindAction("place at the right drawer of the kitchen counter"), 59);
  CHECK_EQ(FindAction("close the cabinet 4"), 69);
  for (int id = 0; id < 70; ++id) {
    CHECK_EQ(FindAction(ActionText(id)), id);
    CHECK_EQ(FindAction(std::to_string(id)), id);
  }
  for (const char* text : {"", "70", "-1", "007", "1 2", "Pick up the cup", "pick up the table 1"})
    CHECK_EQ(FindAction(text), -1);
}

TEST(Task) {
  const auto task = Load(kCupOnSofa);
  CHECK(!task->satisfied_at_start);
  Env env;
  CHECK_THROWS(env.Step("0"), InternalError, "before the first Reset");
  CHECK_THROWS(env.Reset(nullptr, {}, 0), InvalidInputError, "got none");
  env.Reset(task, {}, 7);
  const auto say = [&env](const char* action) {
    env.Step(action);
    return env.observation();
  };
  CHECK_EQ(say("navigate to the table 1"),
           "Last action executed successfully.\nOn the table 1, you see a cup, a cup, and a cup.");
  CHECK_EQ(env.progress(), 1.0 / 3);
  CHECK_EQ(say("pick up the cup"),
           "Last action executed successfully and you are holding cup.\nOn the table 1, you see a cup, and a cup.\n"
           "You are holding a cup.");
  CHECK_EQ(env.held(), 0);
  CHECK_EQ(say("no action"),
           "Last action is invalid. There is no such action.\nOn the table 1, you see a cup, and a cup.\n"
           "You are holding a cup.");
  CHECK_EQ(env.num_steps(), 2);
  CHECK_EQ(env.num_invalid(), 1);
  say("navigate to the sofa");
  CHECK(!env.won());
  CHECK_EQ(say("place at the sofa"),
           "Last action executed successfully and you are holding nothing.\nOn the sofa, you see a cup, and an apple.");
  CHECK(env.won() && env.ended());
  const std::string last = env.observation();
  CHECK_EQ(say("pick up the cup"), last);
  CHECK_EQ(env.progress(), 1.0);

  env.Reset(task, {}, 7);
  for (int k = 0; k < 10; ++k) {
    CHECK(!env.ended());
    say("pick up the cup");
  }
  CHECK(env.ended() && !env.won());
  CHECK_EQ(env.num_steps(), 10);
}

// Drawers hide what is in them and must be open to take it, the refrigerator's door only hides.
TEST(Doors) {
  Env env;
  const std::string closed =
      R"json({"op": "NOR", "args": [{"pred": "opened_fridge", "args": ["fridge_push_point"]}]})json";
  env.Reset(Load(closed), {}, 0);
  const auto last = [&env](const char* action) {
    env.Step(action);
    return env.observation().substr(env.observation().find('\n') + 1);
  };
  for (const char* action :
       {"navigate to the table 1", "pick up the cup", "navigate to the left drawer of the kitchen counter"})
    env.Step(action);
  CHECK_EQ(last("place at the left drawer of the kitchen counter"),
           "The left drawer of the kitchen counter is closed.");
  env.Step("pick up the cup");
  CHECK_EQ(env.num_invalid(), 1);
  CHECK_EQ(last("open the cabinet 7"), "The left drawer of the kitchen counter is open. In it, you see a cup.");
  env.Step("pick up the cup");
  CHECK_EQ(last("navigate to the refrigerator push point"),
           "The refrigerator is open. In it, you see nothing.\nYou are holding a cup.");
  env.Step("place at the refrigerator");
  CHECK_EQ(last("navigate to the cabinet 6"), "The cabinet 6 is closed.");
  CHECK_EQ(last("open the cabinet 6"), "The cabinet 6 is open. In it, you see nothing.");
  env.Step("navigate to the refrigerator");
  CHECK(!env.won());
  env.Step("close the refrigerator");
  CHECK(env.won());
  CHECK_EQ(env.num_invalid(), 1);
}

// The table's centre is (0, 0), the scene's middle (0, 3), so the robot stands at (0, 1.2) and looks along -z.
// The sofa is 4.8 m away, behind. Unmoved objects are near from their own place; what is put down lands where it may.
TEST(Geometry) {
  Env env;
  env.Reset(Load(kCupOnSofa), {Reach::kGeometry, 10}, 3);
  env.Step("navigate to the table 1");
  CHECK(env.Pickable(0) && env.Pickable(1) && env.Pickable(2) && !env.Pickable(3));
  CHECK(env.NearTarget(FindTarget(kTable)) && !env.NearTarget(FindTarget(kSofa)));
  env.Step("pick up the cup");
  env.Step("navigate to the sofa");
  env.Step("place at the sofa");
  CHECK(env.won());
  const Point& lies = env.objects()[0].position;
  CHECK(lies.x >= -0.8 && lies.x <= 0.8 && lies.z >= 5.6 && lies.z <= 6.4);
  int near = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    env.Reset(Load(kCupOnSofa), {Reach::kGeometry, 10}, seed);
    for (const char* action : {"6", "pick up the cup", "place at the table 1"}) env.Step(action);
    const Point& at = env.objects()[0].position;
    const double distance = std::hypot(at.x, at.z - 1.2), angle = std::atan2(std::abs(at.x), 1.2 - at.z);
    CHECK_EQ(env.NearObject(0), distance <= 1.5 && angle <= 1.0);
    near += env.NearObject(0) ? 1 : 0;
  }
  CHECK(near > 100);
  CHECK(near < 200);
  const auto bare = ReadTasks(Episodes(kCupOnSofa), "episodes", {})[0];
  const Env::Options geometry = {Reach::kGeometry, 10};
  CHECK_THROWS(env.Reset(bare, geometry, 0), InvalidInputError, "expected boxes for the scene 'flat'");
}

std::string Reason(const std::string& goal) {
  try {
    Load(goal);
    return "";
  } catch (const GameFileError& error) {
    return error.what();
  }
}

TEST(BadGoals) {
  const auto says = [](const std::string& goal, const char* reason) {
    return Reason(goal).find(reason) != std::string::npos;
  };
  CHECK(says(R"json({"op": "XOR", "args": []})json", "expected AND, OR, NAND or NOR, got 'XOR'"));
  CHECK_EQ(Reason(R"json({"pred": "near", "args": []})json"), "episodes: line 3, column 22: unknown predicate 'near'");
  CHECK(says(R"json({"pred": "holding", "args": ["X"]})json", "got 'X'"));
  CHECK(says(R"json({"pred": "holding", "args": []})json", "expected 1 arguments, got 0"));
  const std::string empty_hand = R"json({"pred": "not_holding", "args": []})json";
  const auto quantified = [](const std::string& quantifier, int first, int count, const std::string& arg) {
    std::string vars;
    for (int k = first; k < first + count; ++k)
      vars += (k > first ? ", {\"name\": \"V" : "{\"name\": \"V") + std::to_string(k) + "\", \"category\": \"cup\"}";
    return R"json({"op": "AND", "quantifier": ")json" + quantifier + R"json(", "vars": [)json" + vars +
           R"json(], "args": [)json" + arg + "]}";
  };
  const auto vars = [&](int count) { return quantified("EXISTS", 0, count, empty_hand); };
  CHECK_EQ(Load(vars(2))->goal.nodes[0].count, 6U);  // 3 cups: ordered pairs of different ones
  CHECK_EQ(Load(vars(3))->goal.nodes[0].count, 6U);
  CHECK(says(vars(4), "more objects of a category than the episode has"));
  std::string deep = empty_hand;
  for (int k = 0; k < 10; ++k) deep = quantified("FORALL", k, 1, deep);
  CHECK(says(deep, "more than 20000 nodes"));
}

TEST(Mutations) {
  std::mt19937_64 random(11);
  const std::string original = Episodes(kCupOnSofa);
  const std::vector<std::string> words = {"{", "}", "[", "]", "\"", ",", "null", "-1e9", "cup", "a_cup", kSofa, "\xff"};
  int played = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = original;
    for (std::size_t k = random() % 3 + 1; k > 0; --k) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text.insert(at, words[random() % words.size()]); break;
        case 1: text.erase(at, random() % 20 + 1); break;
        default: text[at] = std::string("0159abc ")[random() % 8];
      }
    }
    try {
      for (const auto& task : ReadTasks(text, "mutated", ReadScenes(kScenes, "scenes"))) {
        Env env;
        env.Reset(task, {}, 0);
        for (const char* action : {"6", "pick up the cup", "12", "place at the sofa"}) env.Step(action);
        CHECK(env.progress() >= 0 && env.progress() <= 1);
      }
      ++played;
    } catch (const GameFileError&) {
      ++refused;
    }
  }
  CHECK(played > 50);
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace embodied_mem
