#include "envs/alfworld/goal.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace embodied_mem::alfworld {
namespace {

// One top-level condition of a goal: nested (exists ...) and (and ...) flattened, variables renamed by their type.
struct Clause {
  std::map<std::string, std::string> variables;  // "?o1" to "o1"; "?r" to "r"
  std::set<std::string> conditions;              // e.g. "inreceptacle o1 r"
  std::map<std::string, std::string> types;      // e.g. "objecttype o1" to "appletype"
  int objects = 0;
};

class GoalReader {
 public:
  explicit GoalReader(const SExpr& tree) : tree_(tree) {}

  [[noreturn]] void Fail(std::uint32_t node, const std::string& reason) const {
    throw TextError{tree_.Offset(node), reason};
  }

  void Flatten(std::uint32_t node, Clause* clause) const {
    const std::string_view head = tree_.Head(node);
    const std::uint32_t first = tree_.IsList(node) ? tree_.FirstChild(node) : 0;
    if (head.empty()) Fail(node, "expected a condition in (:goal ...), got " + tree_.Describe(node));
    if (head == "and") {
      for (std::uint32_t part = tree_.Next(first); part != 0; part = tree_.Next(part)) Flatten(part, clause);
    } else if (head == "exists") {
      const std::uint32_t variables = tree_.Next(first);
      const std::uint32_t body = variables == 0 ? 0 : tree_.Next(variables);
      if (body == 0 || !tree_.IsList(variables) || tree_.Next(body) != 0)
        Fail(node, "expected (exists (variables) condition)");
      Declare(variables, clause);
      Flatten(body, clause);
    } else {
      Condition(node, clause);
    }
  }

 private:
  void Declare(std::uint32_t list, Clause* clause) const {
    std::vector<std::uint32_t> pending;
    for (std::uint32_t node = tree_.FirstChild(list); node != 0; node = tree_.Next(node)) {
      if (tree_.IsList(node)) Fail(node, "expected a variable, got a list");
      if (tree_.Token(node) != "-") {
        if (tree_.Token(node).front() != '?') Fail(node, "expected a variable, got " + tree_.Describe(node));
        pending.push_back(node);
        continue;
      }
      const std::uint32_t type_node = tree_.Next(node);
      if (type_node == 0 || tree_.IsList(type_node)) Fail(node, "expected a type after '-'");
      const std::string_view type = tree_.Token(type_node);
      for (const std::uint32_t variable : pending) {
        std::string role;
        if (type == "object") role = "o" + std::to_string(++clause->objects);
        else if (type == "receptacle") role = "r";
        else if (type == "agent") role = "a";
        else if (type == "location") role = "l";
        else Fail(type_node, "unknown type " + tree_.Describe(type_node) + " of a variable in (:goal ...)");
        for (const auto& known : clause->variables) {
          if (known.second == role) Fail(variable, "unknown goal: two variables of type " + std::string(type));
        }
        if (!clause->variables.emplace(tree_.Token(variable), role).second)
          Fail(variable, "the variable " + tree_.Describe(variable) + " is declared twice");
      }
      pending.clear();
      node = type_node;
    }
    if (!pending.empty()) Fail(pending.front(), "the variable " + tree_.Describe(pending.front()) + " has no '- type'");
  }

  std::string RoleOf(std::uint32_t node, const Clause& clause) const {
    const auto found =
        tree_.IsList(node) ? clause.variables.end() : clause.variables.find(std::string(tree_.Token(node)));
    if (found == clause.variables.end()) Fail(node, "unknown variable " + tree_.Describe(node) + " in (:goal ...)");
    return found->second;
  }

  void Condition(std::uint32_t node, Clause* clause) const {
    const std::string head(tree_.Head(node));
    if (head == "not") {  // only as in (not (= ?o1 ?o2))
      const std::uint32_t inner = tree_.Next(tree_.FirstChild(node));
      if (inner == 0 || tree_.Head(inner) != "=" || tree_.Next(inner) != 0)
        Fail(node, "unknown goal: expected (not (= ?a ?b)), got " + Quote(tree_.Canonical(node)));
      std::set<std::string> roles;
      for (std::uint32_t arg = tree_.Next(tree_.FirstChild(inner)); arg != 0; arg = tree_.Next(arg))
        roles.insert(RoleOf(arg, *clause));
      if (roles != std::set<std::string>{"o1", "o2"})
        Fail(node, "unknown goal: expected two different objects in (= ...)");
      clause->conditions.insert("different");
      return;
    }
    std::string text = head;
    const bool typed = head == "objecttype" || head == "receptacletype";
    std::uint32_t count = 0;
    for (std::uint32_t arg = tree_.Next(tree_.FirstChild(node)); arg != 0; arg = tree_.Next(arg), ++count) {
      if (count == 3) Fail(node, "unknown goal condition " + Quote(tree_.Canonical(node)));
      if (!typed || count != 1) {
        text += " " + RoleOf(arg, *clause);
        continue;
      }
      if (tree_.IsList(arg) || tree_.Token(arg).front() == '?') Fail(arg, "expected the name of a type");
      const auto added = clause->types.emplace(text, tree_.Token(arg));
      if (added.first->second != tree_.Token(arg)) Fail(arg, "unknown goal: two different types for one variable");
    }
    if (typed && count != 2) Fail(node, "expected 2 arguments of " + Quote(head));
    clause->conditions.insert(std::move(text));
  }

  const SExpr& tree_;
};

std::string Joined(const std::set<std::string>& conditions) {
  std::string out;
  for (const std::string& condition : conditions) out += (out.empty() ? "" : ", ") + condition;
  return out;
}

bool Has(const std::vector<std::uint64_t>& bits, std::size_t index) { return (bits[index / 64] >> (index % 64)) & 1U; }

// What no play can bring about is refused here: the original turns such a problem into a game without actions.
class Reach {
 public:
  explicit Reach(const Game& game) : game_(game) {}

  bool Hold(std::size_t o) const {
    if (Initially(game_.layout.held, o)) return true;
    if (!game_.objects[o].pickupable) return false;
    for (std::size_t r = 0; r < game_.receptacles.size(); ++r) {
      if (game_.receptacles[r].location != kNone && InsideFirst(o, r)) return true;
    }
    return false;
  }
  bool Inside(std::size_t o, std::size_t r) const {
    if (InsideFirst(o, r)) return true;
    const Receptacle& receptacle = game_.receptacles[r];
    return receptacle.location != kNone && Has(receptacle.accepts, o) && Hold(o);
  }
  bool Treated(TaskType type, std::size_t o) const {
    const Object& object = game_.objects[o];
    const auto someone = [this](bool Receptacle::* flag) {
      for (const Receptacle& receptacle : game_.receptacles) {
        if (receptacle.*flag && receptacle.location != kNone) return true;
      }
      return false;
    };
    switch (type) {
      case TaskType::kClean:
        return object.cleanable && (Initially(game_.layout.clean, o) || (Hold(o) && someone(&Receptacle::cleans)));
      case TaskType::kHeat:
        return object.heatable && (Initially(game_.layout.hot, o) || (Hold(o) && someone(&Receptacle::heats)));
      case TaskType::kCool:
        return object.coolable && (Initially(game_.layout.cool, o) || (Hold(o) && someone(&Receptacle::cools)));
      default: return true;
    }
  }
  bool Lit(std::size_t o) const {
    if (!game_.objects[o].toggleable) return false;
    for (std::size_t r = 0; r < game_.receptacles.size(); ++r) {
      if (game_.receptacles[r].location != kNone && Inside(o, r)) return true;
    }
    return false;
  }

 private:
  bool Initially(std::size_t base, std::size_t o) const {
    return (game_.initial_state[base + o / 64] >> (o % 64)) & 1U;
  }
  bool InsideFirst(std::size_t o, std::size_t r) const {
    return Initially(game_.layout.inside + r * game_.layout.object_words, o);
  }
  const Game& game_;
};

void Classify(const std::vector<Clause>& clauses, Goal* goal, std::string* problem) {
  const auto type_of = [](const Clause& clause, const char* key) {
    const auto found = clause.types.find(key);
    return found == clause.types.end() ? std::string() : found->second;
  };
  if (clauses.size() == 1) {
    const Clause& clause = clauses[0];
    const std::string text = Joined(clause.conditions);
    goal->object_type = type_of(clause, "objecttype o1");
    goal->receptacle_type = type_of(clause, "receptacletype r");
    if (text == "inreceptacle o1 r, objecttype o1, receptacletype r") goal->type = TaskType::kPlace;
    else if (text == "cleanable o1, inreceptacle o1 r, isclean o1, objecttype o1, receptacletype r")
      goal->type = TaskType::kClean;
    else if (text == "heatable o1, inreceptacle o1 r, ishot o1, objecttype o1, receptacletype r")
      goal->type = TaskType::kHeat;
    else if (text == "coolable o1, inreceptacle o1 r, iscool o1, objecttype o1, receptacletype r")
      goal->type = TaskType::kCool;
    else if (text ==
                 "different, inreceptacle o1 r, inreceptacle o2 r, objecttype o1, objecttype o2, receptacletype r" &&
             type_of(clause, "objecttype o2") == goal->object_type)
      goal->type = TaskType::kPlaceTwo;
    else *problem = text;
    return;
  }
  const auto is_lamp = [](const Clause& clause) { return clause.conditions.count("toggleable o1") != 0; };
  const Clause& lamp = is_lamp(clauses[0]) ? clauses[0] : clauses[1];
  const Clause& held = is_lamp(clauses[0]) ? clauses[1] : clauses[0];
  goal->type = TaskType::kLook;
  goal->lamp_type = type_of(lamp, "objecttype o1");
  goal->object_type = type_of(held, "objecttype o1");
  if (Joined(lamp.conditions) !=
      "atlocation a l, inreceptacle o1 r, istoggled o1, objecttype o1, "
      "receptacleatlocation r l, toggleable o1")
    *problem = Joined(lamp.conditions);
  else if (Joined(held.conditions) != "holds a o1, objecttype o1") *problem = Joined(held.conditions);
}

}  // namespace

const char* TaskTypeName(TaskType type) {
  switch (type) {
    case TaskType::kPlace: return "pick_and_place_simple";
    case TaskType::kLook: return "look_at_obj_in_light";
    case TaskType::kClean: return "pick_clean_then_place_in_recep";
    case TaskType::kHeat: return "pick_heat_then_place_in_recep";
    case TaskType::kCool: return "pick_cool_then_place_in_recep";
    case TaskType::kPlaceTwo: return "pick_two_obj_and_place";
  }
  throw InternalError("unknown task type " + std::to_string(static_cast<int>(type)));
}

void ReadGoal(const SExpr& tree, std::uint32_t part, Game* game) {
  const GoalReader reader(tree);
  const std::uint32_t body = tree.Next(tree.FirstChild(part));
  if (body == 0) reader.Fail(part, "the goal is empty");
  if (tree.Next(body) != 0) reader.Fail(tree.Next(body), "expected one condition in (:goal ...), got more");
  std::vector<std::uint32_t> parts;
  if (tree.Head(body) == "and") {
    for (std::uint32_t node = tree.Next(tree.FirstChild(body)); node != 0; node = tree.Next(node))
      parts.push_back(node);
  } else {
    parts.push_back(body);
  }
  if (parts.empty()) reader.Fail(part, "the goal is empty");
  if (parts.size() > 2) reader.Fail(parts[2], "unknown goal: more than two conditions at its top");
  std::vector<Clause> clauses(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) reader.Flatten(parts[i], &clauses[i]);
  Goal& goal = game->goal;
  std::string problem;
  Classify(clauses, &goal, &problem);
  if (!problem.empty() || goal.object_type.empty()) {
    reader.Fail(part, "unknown goal: none of ALFWorld's six task types asks for {" +
                          (problem.empty() ? Joined(clauses[0].conditions) : problem) + "}");
  }

  const Reach reach(*game);
  const std::size_t words = game->layout.object_words;
  game->goal_objects.assign(words, 0);
  game->goal_lamps.assign(words, 0);
  const auto mark = [](std::vector<std::uint64_t>* bits, std::size_t o) { (*bits)[o / 64] |= 1ULL << (o % 64); };
  for (std::size_t r = 0; r < game->receptacles.size(); ++r) {
    if (goal.type != TaskType::kLook && game->receptacles[r].type == goal.receptacle_type)
      game->goal_receptacles.push_back(static_cast<std::uint16_t>(r));
  }
  std::map<std::size_t, int> reached;  // by receptacle; for kLook all under 0
  bool lamp_reached = goal.type != TaskType::kLook;
  int most = 0;
  for (std::size_t o = 0; o < game->objects.size(); ++o) {
    const Object& object = game->objects[o];
    if (goal.type == TaskType::kLook && object.type == goal.lamp_type && object.toggleable) {
      mark(&game->goal_lamps, o);
      lamp_reached = lamp_reached || reach.Lit(o);
    }
    if (object.type != goal.object_type) continue;
    if ((goal.type == TaskType::kClean && !object.cleanable) || (goal.type == TaskType::kHeat && !object.heatable) ||
        (goal.type == TaskType::kCool && !object.coolable))
      continue;
    mark(&game->goal_objects, o);
    if (goal.type == TaskType::kLook) {
      if (reach.Hold(o)) most = std::max(most, ++reached[0]);
    } else if (reach.Treated(goal.type, o)) {
      for (const std::uint16_t r : game->goal_receptacles) {
        if (reach.Inside(o, r)) most = std::max(most, ++reached[r]);
      }
    }
  }
  if (most < (goal.type == TaskType::kPlaceTwo ? 2 : 1) || !lamp_reached) {
    reader.Fail(part, std::string("the goal cannot be reached: too few objects of type ") + Quote(goal.object_type) +
                          (lamp_reached ? " can be brought where it wants them" : " or no lamp that can be turned on"));
  }
}

}  // namespace embodied_mem::alfworld
