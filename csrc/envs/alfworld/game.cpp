// Loading: from a file, from a file's content, from a PDDL problem.
#include "envs/alfworld/game.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

#include "core/json.h"
#include "core/text.h"

namespace embodied_mem::alfworld {
namespace {

[[noreturn]] void FailIn(const std::string& file, const std::string& part, std::string_view text,
                         const TextError& error) {
  throw GameFileError(file + ": " + (part.empty() ? "" : "in " + part + ", ") + DescribePosition(text, error.offset) +
                      ": " + error.reason);
}

std::string ReadFile(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw GameFileError(path + ": cannot be opened; expected an ALFWorld game file (game.tw-pddl)");
  std::string text;
  char block[1 << 16];
  while (const std::size_t count = std::fread(block, 1, sizeof block, file.get())) {
    text.append(block, count);
    if (text.size() > kMaxFileBytes)
      throw GameFileError(path + ": larger than " + std::to_string(kMaxFileBytes >> 20U) + " MiB, no game file is");
  }
  if (std::ferror(file.get()) != 0) throw GameFileError(path + ": cannot be read (is it a folder?)");
  return text;
}

const std::string& Member(const JsonValue& root, const char* name, std::string_view text, const std::string& file) {
  const JsonValue* member = root.Find(name);
  if (member == nullptr) {
    FailIn(file, "", text,
           {root.offset, std::string("the member '") + name +
                             "' is missing; expected pddl_domain, "
                             "grammar and pddl_problem"});
  }
  if (member->kind != JsonValue::Kind::kString) {
    FailIn(file, "", text,
           {member->offset, std::string("expected a string as '") + name + "', got " + JsonKindName(member->kind)});
  }
  return member->text;
}

// Runs a check of one part of the file; its TextError becomes a GameFileError that names file and part.
template <typename Function>
auto InPart(const std::string& file, const char* part, std::string_view text, Function function) {
  try {
    return function();
  } catch (const TextError& error) {
    FailIn(file, part, text, error);
  }
}

}  // namespace

std::shared_ptr<const Game> Game::Load(const std::string& path) { return FromText(ReadFile(path), path); }

std::shared_ptr<const Game> Game::FromText(std::string_view json, const std::string& name) {
  JsonValue root;
  try {
    root = ParseJson(json);
  } catch (const TextError& error) {
    FailIn(name, "", json, error);
  }
  if (root.kind != JsonValue::Kind::kObject)
    FailIn(name, "", json, {root.offset, std::string("expected a JSON object, got ") + JsonKindName(root.kind)});
  auto game = std::make_shared<Game>();
  game->name = name;
  const std::string& domain = Member(root, "pddl_domain", json, name);
  const std::string& grammar = Member(root, "grammar", json, name);
  const std::string& problem = Member(root, "pddl_problem", json, name);
  const bool sinks_clean = InPart(name, "pddl_domain", domain, [&] { return CheckDomain(domain); });
  game->task = InPart(name, "grammar", grammar, [&] { return CheckGrammar(grammar); });
  InPart(name, "pddl_problem", problem, [&] { ReadProblem(problem, sinks_clean, game.get()); });
  if (const JsonValue* walkthrough = root.Find("walkthrough")) {
    for (const JsonValue& command : walkthrough->items) {
      if (command.kind == JsonValue::Kind::kString) game->walkthrough.push_back(command.text);
    }
  }
  return game;
}

std::shared_ptr<const Game> Game::FromProblem(std::string_view pddl_problem, const std::string& task,
                                              const std::string& name) {
  auto game = std::make_shared<Game>();
  game->name = name;
  game->task = task;
  InPart(name, "task", task, [&] { CheckTask(task); });
  InPart(name, "pddl_problem", pddl_problem, [&] { ReadProblem(pddl_problem, false, game.get()); });
  return game;
}

std::uint16_t Game::FindName(std::string_view thing_name) const {
  const auto found =
      std::lower_bound(by_name.begin(), by_name.end(), thing_name, [this](NamedThing a, std::string_view b) {
        return (a.is_receptacle ? receptacles[a.index].name : objects[a.index].name) < b;
      });
  if (found == by_name.end()) return kNone;
  const auto rank = static_cast<std::uint16_t>(found - by_name.begin());
  return NameOf(rank) == thing_name ? rank : kNone;
}

}  // namespace embodied_mem::alfworld
