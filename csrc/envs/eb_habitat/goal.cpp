#include "envs/eb_habitat/goal.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/json_fields.h"

namespace embodied_mem::eb_habitat {
namespace {

enum class Arguments : std::uint8_t { kNone, kObject, kObjectReceptacle, kObjectPart, kFridge, kDrawer, kTarget };

struct PredicateRow {
  std::string_view name;
  Predicate predicate;
  Arguments arguments;
};
constexpr PredicateRow kPredicates[] = {
    {"on_top", Predicate::kOnTop, Arguments::kObjectReceptacle},
    {"in", Predicate::kIn, Arguments::kObjectPart},
    {"holding", Predicate::kHolding, Arguments::kObject},
    {"not_holding", Predicate::kNotHolding, Arguments::kNone},
    {"opened_fridge", Predicate::kOpened, Arguments::kFridge},
    {"closed_fridge", Predicate::kClosed, Arguments::kFridge},
    {"opened_cab", Predicate::kOpened, Arguments::kDrawer},
    {"closed_cab", Predicate::kClosed, Arguments::kDrawer},
    {"robot_at", Predicate::kRobotAt, Arguments::kTarget},
    {"robot_at_obj", Predicate::kRobotAtObject, Arguments::kObject},
};

using Bindings = std::vector<std::pair<std::string_view, std::uint16_t>>;
using Words = std::vector<const JsonValue*>;

std::uint16_t ReadObject(const JsonValue& word, const ObjectNames& objects, const Bindings& bindings) {
  for (const auto& [name, object] : bindings) {
    if (name == word.text) return object;
  }
  const auto found = std::find(objects.handles.begin(), objects.handles.end(), word.text);
  if (found == objects.handles.end())
    throw TextError{word.offset, "expected a variable or the handle of an object, got " + Quote(word.text)};
  return static_cast<std::uint16_t>(found - objects.handles.begin());
}

std::uint8_t ReadPlace(const JsonValue& word, Arguments kind) {
  std::uint8_t place = kNowhere;
  const char* expected = "";
  switch (kind) {
    case Arguments::kObjectReceptacle:
      place = FindReceptacle(word.text);
      expected = "a receptacle";
      break;
    case Arguments::kTarget:
      place = FindTarget(word.text);
      expected = "a receptacle or an articulated part";
      break;
    case Arguments::kFridge:
      place = FindPart(word.text) == kFridge ? kFridge : kNowhere;
      expected = "the refrigerator's door";
      break;
    case Arguments::kDrawer:
      place = FindPart(word.text) == kFridge ? kNowhere : FindPart(word.text);
      expected = "a drawer";
      break;
    default: place = FindPart(word.text); expected = "an articulated part";
  }
  if (place == kNowhere)
    throw TextError{word.offset, std::string("expected ") + expected + ", got " + Quote(word.text)};
  return place;
}

Literal MakeLiteral(const JsonValue& name, const Words& words, const ObjectNames& objects, const Bindings& bindings) {
  const auto row = std::find_if(std::begin(kPredicates), std::end(kPredicates),
                                [&](const PredicateRow& entry) { return entry.name == name.text; });
  if (row == std::end(kPredicates)) throw TextError{name.offset, "unknown predicate " + Quote(name.text)};
  const Arguments kind = row->arguments;
  const bool two = kind == Arguments::kObjectReceptacle || kind == Arguments::kObjectPart;
  const std::size_t expected = kind == Arguments::kNone ? 0 : two ? 2 : 1;
  if (words.size() != expected) {
    throw TextError{name.offset, Quote(name.text) + ": expected " + std::to_string(expected) + " arguments, got " +
                                     std::to_string(words.size())};
  }
  for (const JsonValue* word : words) Expect(*word, JsonValue::Kind::kString, "an argument of " + Quote(name.text));
  Literal literal{row->predicate};
  if (two || kind == Arguments::kObject) literal.object = ReadObject(*words[0], objects, bindings);
  if (kind != Arguments::kNone && kind != Arguments::kObject) literal.place = ReadPlace(*words[expected - 1], kind);
  return literal;
}

class Expander {
 public:
  explicit Expander(const ObjectNames& objects) : objects_(objects) {}

  GoalTree Expand(const JsonValue& value) {
    Node(value);
    return std::move(tree_);
  }

 private:
  std::uint32_t Add(Op op, const JsonValue& value) {
    if (tree_.nodes.size() >= kMaxGoalNodes)
      throw TextError{value.offset, "the goal has more than " + std::to_string(kMaxGoalNodes) +
                                        " nodes when its "
                                        "quantifiers are expanded"};
    tree_.nodes.push_back({op, {}, 0, 0});
    return static_cast<std::uint32_t>(tree_.nodes.size() - 1);
  }

  void SetChildren(std::uint32_t node, const std::vector<std::uint32_t>& children) {
    tree_.nodes[node].first = static_cast<std::uint32_t>(tree_.children.size());
    tree_.nodes[node].count = static_cast<std::uint32_t>(children.size());
    tree_.children.insert(tree_.children.end(), children.begin(), children.end());
  }

  std::uint32_t Node(const JsonValue& value) {
    Expect(value, JsonValue::Kind::kObject, "a goal's node");
    if (value.Find("pred") != nullptr) {
      const JsonValue& name = Member(value, "pred", JsonValue::Kind::kString);
      Words words;
      for (const JsonValue& word : ListMember(value, "args")) words.push_back(&word);
      const std::uint32_t node = Add(Op::kLiteral, value);
      tree_.nodes[node].literal = MakeLiteral(name, words, objects_, bindings_);
      return node;
    }
    const JsonValue& name = Member(value, "op", JsonValue::Kind::kString);
    const Op op = name.text == "AND"    ? Op::kAnd
                  : name.text == "OR"   ? Op::kOr
                  : name.text == "NAND" ? Op::kNand
                  : name.text == "NOR"  ? Op::kNor
                                        : Op::kLiteral;
    if (op == Op::kLiteral) throw TextError{name.offset, "expected AND, OR, NAND or NOR, got " + Quote(name.text)};
    const JsonValue* quantifier = value.Find("quantifier");
    if (quantifier == nullptr || quantifier->kind == JsonValue::Kind::kNull) return Plain(op, value);
    Expect(*quantifier, JsonValue::Kind::kString, "'quantifier'");
    if (quantifier->text != "EXISTS" && quantifier->text != "FORALL")
      throw TextError{quantifier->offset, "expected EXISTS or FORALL, got " + Quote(quantifier->text)};
    const std::uint32_t node = Add(quantifier->text == "EXISTS" ? Op::kOr : Op::kAnd, value);
    const auto& vars = ListMember(value, "vars");
    if (vars.empty()) throw TextError{quantifier->offset, "a quantifier without variables"};
    std::vector<std::uint32_t> children;
    Assign(op, value, vars, 0, bindings_.size(), &children);
    if (children.empty())
      throw TextError{quantifier->offset, "the goal ranges over more objects of a category than the episode has"};
    SetChildren(node, children);
    return node;
  }

  std::uint32_t Plain(Op op, const JsonValue& value) {
    const std::uint32_t node = Add(op, value);
    const auto& args = ListMember(value, "args");
    if (args.empty()) throw TextError{value.offset, "a goal's node without arguments"};
    std::vector<std::uint32_t> children;
    for (const JsonValue& arg : args) children.push_back(Node(arg));
    SetChildren(node, children);
    return node;
  }

  // Binds vars[k] and the next to every choice of objects that differ from each other.
  void Assign(Op op, const JsonValue& value, const std::vector<JsonValue>& vars, std::size_t k, std::size_t outer,
              std::vector<std::uint32_t>* children) {
    // Choices that lead to no node, since the objects of a category run out, are counted, too.
    if (++num_choices_ > kMaxGoalNodes)
      throw TextError{value.offset,
                      "a goal whose quantifiers have more than " + std::to_string(kMaxGoalNodes) + " choices"};
    if (k == vars.size()) {
      children->push_back(Plain(op, value));
      return;
    }
    const std::string& name = StringMember(vars[k], "name");
    const std::string& word = StringMember(vars[k], "category");
    const std::uint8_t category = FindCategory(word);
    if (category == kNowhere) throw TextError{vars[k].offset, "no category is called " + Quote(word)};
    for (const auto& binding : bindings_) {
      if (binding.first == name) throw TextError{vars[k].offset, "two variables are called " + Quote(name)};
    }
    for (std::size_t o = 0; o < objects_.handles.size(); ++o) {
      const auto taken = [o](const auto& binding) { return binding.second == o; };
      if (objects_.categories[o] != category ||
          std::any_of(bindings_.begin() + static_cast<std::ptrdiff_t>(outer), bindings_.end(), taken))
        continue;
      bindings_.emplace_back(name, static_cast<std::uint16_t>(o));
      Assign(op, value, vars, k + 1, outer, children);
      bindings_.pop_back();
    }
  }

  const ObjectNames& objects_;
  Bindings bindings_;
  GoalTree tree_;
  std::size_t num_choices_ = 0;
};

}  // namespace

GoalTree ReadGoal(const JsonValue& value, const ObjectNames& objects) { return Expander(objects).Expand(value); }

Literal ReadSubgoalLiteral(const JsonValue& value, const ObjectNames& objects) {
  Expect(value, JsonValue::Kind::kArray, "a literal of a subgoal");
  if (value.items.empty()) throw TextError{value.offset, "expected [predicate, arguments...], got an empty list"};
  Expect(value.items[0], JsonValue::Kind::kString, "a predicate");
  Words words;
  for (std::size_t k = 1; k < value.items.size(); ++k) words.push_back(&value.items[k]);
  return MakeLiteral(value.items[0], words, objects, {});
}

const char* PredicateName(const Literal& literal) {
  switch (literal.predicate) {
    case Predicate::kOnTop: return "on_top";
    case Predicate::kIn: return "in";
    case Predicate::kHolding: return "holding";
    case Predicate::kNotHolding: return "not_holding";
    case Predicate::kOpened: return literal.place == kFridge ? "opened_fridge" : "opened_cab";
    case Predicate::kClosed: return literal.place == kFridge ? "closed_fridge" : "closed_cab";
    case Predicate::kRobotAt: return "robot_at";
    case Predicate::kRobotAtObject: return "robot_at_obj";
  }
  return "";
}

const char* OpName(Op op) {
  switch (op) {
    case Op::kAnd: return "AND";
    case Op::kOr: return "OR";
    case Op::kNand: return "NAND";
    case Op::kNor: return "NOR";
    case Op::kLiteral: break;
  }
  return "";
}

}  // namespace embodied_mem::eb_habitat
