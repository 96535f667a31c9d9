// ALFWorld's world without Python: a whole game, bad and mutated problems, envs on threads.
#include <atomic>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "envs/alfworld/env.h"
#include "envs/alfworld/sexpr.h"
#include "envs/vector_env.h"
#include "tests/check.h"
#include "tests/kitchen.h"

namespace embodied_mem {
namespace {

using alfworld::Command;
using alfworld::Env;
using alfworld::Game;
using alfworld::Wording;
using testing::KitchenProblem;

// What the parser says about a bad text, "" for a good one.
std::string SExprReason(std::string_view text) {
  try {
    alfworld::SExpr tree(text);
    return "";
  } catch (const TextError& error) {
    return error.reason;
  }
}

TEST(SExpr) {
  const alfworld::SExpr tree("(Define ; comment )\n (a  B)( )c)");
  CHECK_EQ(tree.Canonical(tree.Root()), "(define (a b) () c)");
  for (const char* bad : {"", ";", "a", ")", "(", "(a", "(a))", "(a) b", "(\x01)", "(\xC3\xA9)"})
    CHECK(!SExprReason(bad).empty());
  CHECK(SExprReason(std::string(1000000, '(')).find("nested deeper") != std::string::npos);
}

std::shared_ptr<const Game> Kitchen() {
  return Game::FromProblem(KitchenProblem(), "cool some apple and put it in countertop.", "kitchen");
}

std::string Commands(const Env& env) {
  std::vector<Command> commands;
  env.FillExtra(&commands);
  std::string text;
  for (const Command& command : commands) text += alfworld::CommandText(*env.task(), env.options(), command) + "|";
  return text;
}

TEST(Game) {
  Env env;
  env.Reset(Kitchen(), Wording::k04);
  CHECK_EQ(
      env.observation(),
      "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see "
      "a cabinet 2, a cabinet 1, a countertop 1, a fridge 1, and a sinkbasin 1.\n\n"
      "Your task is to: cool some apple and put it in countertop.");
  CHECK_EQ(Commands(env),
           "go to cabinet 1|go to cabinet 2|go to countertop 1|go to fridge 1|go to sinkbasin 1|help|inventory|look|");
  const auto say = [&env](const char* command) {
    env.Step(command);
    return env.observation();
  };
  CHECK_EQ(say("look"), "You are in the middle of a room. Looking quickly around you, you see nothing.");
  CHECK_EQ(say("Look"), "Nothing happens.");
  CHECK_EQ(say("go to cabinet 2"), "You arrive at cabinet 2. The cabinet 2 is closed.");
  CHECK_EQ(say("open cabinet 2"), "You open the cabinet 2. The cabinet 2 is open. In it, you see nothing.");
  CHECK_EQ(say("examine cabinet 1"), "On the cabinet 1, you see a apple 2.");
  CHECK_EQ(say("examine apple 2"), "Nothing happens.");
  CHECK_EQ(say(" take apple 2 from cabinet 1\n"), "You pick up the apple 2 from the cabinet 1.");
  CHECK_EQ(say("examine apple 2"), "There's nothing special about apple 2.");
  CHECK_EQ(say("inventory"), "You are carrying: a apple 2.");
  CHECK_EQ(say("move apple 2 to cabinet 2"), "You move the apple 2 to the cabinet 2.");
  CHECK_EQ(say("look"), "You are facing the cabinet 2, and cabinet 1. Next to it, you see a apple 2.");
  const Env before = env;  // the snapshot
  CHECK_EQ(say("take apple 2 from cabinet 2"), "You pick up the apple 2 from the cabinet 2.");
  CHECK_EQ(say("cool apple 2 with fridge 1"), "Nothing happens.");
  CHECK_EQ(say("go to fridge 1"), "You arrive at fridge 1. The fridge 1 is closed.");
  CHECK_EQ(say("cool apple 2 with fridge 1"), "You cool the apple 2 using the fridge 1.");
  CHECK_EQ(env.progress(), 0.5);
  CHECK_EQ(say("examine apple 2"), "This is a cold apple 2.");
  CHECK_EQ(say("go to sinkbasin 1"), "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.");
  CHECK_EQ(say("clean apple 2 with sinkbasin 1"), "You clean the apple 2 using the sinkbasin 1.");
  CHECK_EQ(say("examine apple 2"), "This is a cool and clean apple 2.");
  CHECK_EQ(say("go to countertop 1"),
           "You arrive at countertop 1. On the countertop 1, you see a box 1, and a knife 1.");
  CHECK(!env.won());
  CHECK_EQ(say("move apple 2 to countertop 1"), "You move the apple 2 to the countertop 1.");
  CHECK(env.won());
  CHECK_EQ(env.progress(), 1.0);
  CHECK_EQ(say("take knife 1 from countertop 1"), "You pick up the knife 1 from the countertop 1.");
  CHECK_EQ(say("slice apple 2 with knife 1"), "You sliced the apple 2 with the knife 1.");
  CHECK_EQ(say("move knife 1 to countertop 1"), "You move the knife 1 to the countertop 1.");
  CHECK_EQ(say("take box 1 from countertop 1"), "You pick up the box 1 from the countertop 1.");
  CHECK_EQ(say("examine box 1"), "This is a normal box 1. In it, you see a pen 1.");
  env = before;
  CHECK(!env.won());
  CHECK_EQ(Commands(env),
           "close cabinet 2|examine cabinet 1|examine cabinet 2|go to countertop 1|go to fridge 1|go to sinkbasin 1|"
           "help|inventory|look|take apple 2 from cabinet 2|");
  Env old;
  old.Reset(Kitchen(), Wording::k03);
  old.Step("go to cabinet 1");
  CHECK_EQ(old.observation(), "You arrive at loc 5. On the cabinet 1, you see a apple 2.");
  old.Step("take apple 2 from cabinet 1");
  old.Step("put apple 2 in/on cabinet 1");
  CHECK_EQ(old.observation(), "You put the apple 2 in/on the cabinet 1.");
  old.Step("help");
  CHECK_EQ(old.observation(), "Nothing happens.");
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("the test's own text is not there: " + from);
  return text.replace(at, from.size(), to);
}

TEST(BadProblems) {
  const auto load = [](const std::string& problem) { return Game::FromProblem(problem, "a task.", "bad"); };
  const std::string& good = KitchenProblem();
  CHECK_THROWS(load(""), GameFileError, "bad: in pddl_problem, line 1, column 1: expected a definition");
  CHECK_THROWS(load(good.substr(0, 900)), GameFileError, "truncated");
  CHECK_THROWS(load(Replaced(good, "(openable Fridge_bar_1)", "(openabel Fridge_bar_1)")), GameFileError,
               "unknown predicate 'openabel'");
  CHECK_THROWS(load(Replaced(good, "(openable Fridge_bar_1)", "(openable Apple_bar_1)")), GameFileError,
               "must be of type receptacle");
  CHECK_THROWS(load(Replaced(good, "(openable Fridge_bar_1)", "(openable)")), GameFileError, "expected 1 argument");
  CHECK_THROWS(load(Replaced(good, "(openable Fridge_bar_1)", "(openable Fridge_bar_1 Fridge_bar_1)")), GameFileError,
               "got more");
  CHECK_THROWS(load(Replaced(good, "(openable Fridge_bar_1)", "(openable Fridge_bar_7)")), GameFileError,
               "not declared");
  CHECK_THROWS(load(Replaced(good, "Pen_bar_1 - object", "Pen_bar_1 - thing")), GameFileError,
               "expected one of the types");
  CHECK_THROWS(load(Replaced(good, "Pen_bar_1 - object", "Pen_bar_1 Pen_bar_1 - object")), GameFileError,
               "declared twice");
  CHECK_THROWS(load(Replaced(good, "(:domain alfred)", "(:domain blocks)")), GameFileError,
               "expected (:domain alfred)");
  CHECK_THROWS(load(Replaced(good, "(:domain alfred)", "")), GameFileError, "no part (:domain");
  CHECK_THROWS(load(Replaced(good, "(:domain alfred)", "(:domain alfred) (:more)")), GameFileError,
               "unknown part ':more'");
  CHECK_THROWS(load(Replaced(good, "(atLocation agent1 loc_bar_9)", "")), GameFileError, "where the agent is");
  CHECK_THROWS(load(Replaced(good, "(isCool ?o)", "")), GameFileError, "unknown goal");
  CHECK_THROWS(load(Replaced(good, "(isCool ?o)", "(isCool ?x)")), GameFileError, "unknown variable");
  CHECK_THROWS(load(good.substr(0, good.find("(:goal")) + "(:goal (and )))"), GameFileError, "the goal is empty");
  CHECK_THROWS(load(good.substr(0, good.find("(:goal")) + "(:goal))"), GameFileError, "the goal is empty");
  CHECK_THROWS(load(Replaced(good, "(inReceptacle ?o ?r)", "(inReceptacle ?o ?r) (openable ?r)")), GameFileError,
               "unknown goal");
  CHECK_THROWS(load(Replaced(good, "(canContain CounterTopType AppleType)", "")), GameFileError, "cannot be reached");
  CHECK_THROWS(load(Replaced(good, "(receptacleType Fridge_bar_1 FridgeType)", "")), GameFileError,
               "cannot be reached");
  CHECK_THROWS(Game::FromProblem(good, "a \"task\"", "bad"), GameFileError, "cannot print");
  CHECK_THROWS(Game::FromProblem(good, "", "bad"), GameFileError, "is empty");
  CHECK_THROWS(Game::FromText("{}", "bad"), GameFileError, "'pddl_domain' is missing");
  CHECK_THROWS(Game::FromText("[]", "bad"), GameFileError, "expected a JSON object, got an array");
  CHECK_THROWS(
      Game::FromText(R"json({"pddl_domain":"(define (domain alfred))","grammar":"","pddl_problem":""})json", "bad"),
      GameFileError, "has no part ':requirements'");
  CHECK_THROWS(
      Game::FromText(R"json({"pddl_domain":"(define (domain logistics))","grammar":"","pddl_problem":""})json", "bad"),
      GameFileError, "not that of any known release");
  CHECK_THROWS(Game::FromText(R"json({"pddl_domain":1,"grammar":"","pddl_problem":""})json", "bad"), GameFileError,
               "got a number");
  CHECK_THROWS(Game::Load("/nowhere/game.tw-pddl"), GameFileError, "cannot be opened");
  CHECK_THROWS(Game::Load("/"), GameFileError, "cannot be read");
}

// Anything but a game or a GameFileError (a crash, another exception) fails.
TEST(Mutations) {
  std::mt19937 rng(1);
  int games = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string mutated = KitchenProblem();
    const auto position = [&] { return mutated.empty() ? 0 : rng() % mutated.size(); };
    for (unsigned edits = 1 + rng() % 4; edits > 0; --edits) {
      const std::size_t at = position();
      switch (rng() % 5) {
        case 0:
          if (!mutated.empty()) mutated[at] = static_cast<char>(rng() % 256);
          break;
        case 1: mutated.erase(at, 1 + rng() % 30); break;
        case 2: mutated.insert(at, mutated.substr(position(), 1 + rng() % 60)); break;
        case 3: mutated.insert(at, std::string(1 + rng() % 3, "()\"{}[]-?;"[rng() % 10])); break;
        default:
          if (rng() % 8 == 0) mutated.resize(at);
          break;
      }
    }
    try {
      const auto game = Game::FromProblem(mutated, "a task.", "mutated");
      ++games;
      Env env;
      env.Reset(game, Wording::k04);
      for (int step = 0; step < 8; ++step) {
        std::vector<Command> commands;
        env.FillExtra(&commands);
        env.Step(alfworld::CommandText(*game, Wording::k04, commands[rng() % commands.size()]));
        CHECK(env.observation() != "Nothing happens.");
      }
    } catch (const GameFileError&) {
      ++refused;
    }
  }
  CHECK(games > 0);
  CHECK(refused > 0);
}

TEST(VectorEnv) {
  using Envs = VectorEnv<Env>;
  std::vector<std::unique_ptr<Envs>> sides;
  for (const std::size_t threads : {1U, 3U}) sides.push_back(std::make_unique<Envs>(9, 20, threads, Wording::k04));
  CHECK_THROWS(sides[0]->Step(std::vector<std::string_view>(9, "look")), InvalidInputError, "never reset");
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < 9; ++i) all.push_back(i);
  for (auto& side : sides)
    side->Reset(all, std::vector<std::shared_ptr<const Game>>(9, Kitchen()), std::vector<std::uint64_t>(9));
  CHECK_THROWS(sides[0]->Step({"look"}), InvalidInputError, "expected one action for each of 9 envs, got 1");
  CHECK_THROWS(sides[0]->Reset({9}, {Kitchen()}, {0}), InvalidInputError, "expected 0 to 8, got 9");
  CHECK_THROWS(sides[0]->Reset({1, 1}, {Kitchen(), Kitchen()}, {0, 0}), InvalidInputError, "twice");
  CHECK_THROWS(sides[0]->Reset({1}, {nullptr}, {0}), InvalidInputError, "no task");
  CHECK_THROWS(sides[0]->env(9), InvalidInputError, "got 9");
  CHECK_THROWS(sides[0]->Restore(0, Env()), InvalidInputError, "never reset");
  std::mt19937 rng(5);
  for (int step = 0; step < 60; ++step) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < 9; ++i) {
      const auto& commands = sides[0]->extra(i);
      texts.push_back(alfworld::CommandText(*sides[0]->env(i).task(), Wording::k04, commands[rng() % commands.size()]));
    }
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    for (auto& side : sides) side->Step(views);
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK_EQ(sides[0]->env(i).observation(), sides[1]->env(i).observation());
      CHECK(sides[0]->env(i).state() == sides[1]->env(i).state());
      CHECK_EQ(sides[0]->truncated(i), !sides[0]->env(i).won() && step >= 19);
    }
    if (step == 30) {
      for (auto& side : sides) side->Restore(4, Env(side->env(2)));
    }
  }
}

// Frameworks step an env per thread; all share the game. Under ThreadSanitizer a write into what is shared is reported.
TEST(Threads) {
  constexpr unsigned kThreads = 256;
  const auto game = Kitchen();
  const auto play = [&game](unsigned seed) {
    VectorEnv<Env> envs(1, 12, 1, Wording::k04);
    envs.Reset({0}, {game}, {seed});
    std::mt19937 rng(seed);
    std::string texts = envs.env(0).observation();
    while (!envs.truncated(0) && !envs.env(0).won()) {
      const auto& commands = envs.extra(0);
      const std::string command = alfworld::CommandText(*game, Wording::k04, commands[rng() % commands.size()]);
      envs.Step({command});
      texts += "|" + envs.env(0).observation();
    }
    return texts;
  };
  std::atomic<unsigned> num_ready{0};
  std::vector<std::string> together(kThreads);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ++num_ready;
      while (num_ready < kThreads) std::this_thread::yield();  // all at once
      together[t] = play(t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned t = 0; t < kThreads; ++t) CHECK_EQ(together[t], play(t));
}

}  // namespace
}  // namespace embodied_mem
