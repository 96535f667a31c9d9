// What can be true of an episode's state: literals, and trees of them with their quantifiers expanded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/json.h"
#include "envs/eb_habitat/domain.h"

namespace embodied_mem::eb_habitat {

constexpr std::size_t kMaxObjects = 1000;
constexpr std::size_t kMaxGoalNodes = 20000;  // of a tree, expanded

enum class Predicate : std::uint8_t {
  kOnTop,       // object, receptacle: it lies there and is not in the hand
  kIn,          // object, part: the same for the receptacle inside the part
  kHolding,     // object
  kNotHolding,  // nothing is in the hand
  kOpened,      // part
  kClosed,      // part
  kRobotAt,     // target
  kRobotAtObject,
};

struct Literal {
  Predicate predicate;
  std::uint16_t object = 0;
  std::uint8_t place = 0;  // a receptacle, a part, or a target
};

// What names in a goal mean: the episode's objects.
struct ObjectNames {
  std::vector<std::string> handles;
  std::vector<std::uint8_t> categories;
};

enum class Op : std::uint8_t { kLiteral, kAnd, kOr, kNand, kNor };

// Root first; the children of node i are children[nodes[i].first] and the next.
struct GoalTree {
  struct Node {
    Op op;
    Literal literal;
    std::uint32_t first = 0, count = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::uint32_t> children;

  // `holds` answers for one literal.
  template <typename Holds>
  bool Evaluate(const Holds& holds, std::uint32_t node = 0) const {
    const Node& n = nodes[node];
    if (n.op == Op::kLiteral) return holds(n.literal);
    const bool stop_at = n.op == Op::kOr || n.op == Op::kNor;  // the truth of a child that decides
    bool decided = false;
    for (std::uint32_t k = 0; k < n.count && !decided; ++k) decided = Evaluate(holds, children[n.first + k]) == stop_at;
    return decided == (n.op == Op::kOr || n.op == Op::kNand);
  }
};

// A tree of {"pred", "args"} and {"op", "args"[, "quantifier", "vars"]}. A quantified node becomes OR (EXISTS) or AND
// (FORALL), over all assignments of different objects, of the node's own op. Throws TextError.
GoalTree ReadGoal(const JsonValue& value, const ObjectNames& objects);
// ["predicate", arguments...], the arguments being handles, receptacles and parts. Throws TextError.
Literal ReadSubgoalLiteral(const JsonValue& value, const ObjectNames& objects);

const char* PredicateName(const Literal& literal);
const char* OpName(Op op);

}  // namespace embodied_mem::eb_habitat
