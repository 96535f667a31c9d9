// Reads the PDDL problem of a game: objects, facts, goal; names things as ALFWorld's demangler does.
#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "envs/alfworld/game.h"
#include "envs/alfworld/goal.h"
#include "envs/alfworld/sexpr.h"

namespace embodied_mem::alfworld {
namespace {

// PDDL types of the domain.
enum class Kind : std::uint8_t { kAgent, kLocation, kReceptacle, kObject, kReceptacleType, kObjectType, kAny };
constexpr std::array<std::string_view, 6> kKindNames = {"agent", "location", "receptacle", "object", "rtype", "otype"};

enum class Fact : std::uint8_t {
  kAtLocation,
  kReceptacleAtLocation,
  kObjectAtLocation,
  kOpenable,
  kOpened,
  kInReceptacle,
  kIsContainer,
  kInObject,
  kReceptacleType,
  kCanContain,
  kObjectType,
  kHolds,
  kHoldsAny,
  kIsClean,
  kCleanable,
  kIsHot,
  kHeatable,
  kIsCool,
  kCoolable,
  kPickupable,
  kToggleable,
  kIsToggled,
  kSliceable,
  kIsSliced,
  kNoEffect,
};

struct Predicate {
  std::string_view name;
  Fact fact;
  std::array<Kind, 2> kinds;
  std::uint32_t arity;
};

// Every predicate of the domain. Those marked kNoEffect are never read by an action, the goal or the grammar.
constexpr std::array<Predicate, 32> kPredicates = {{
    {"atlocation", Fact::kAtLocation, {Kind::kAgent, Kind::kLocation}, 2},
    {"cancontain", Fact::kCanContain, {Kind::kReceptacleType, Kind::kObjectType}, 2},
    {"checked", Fact::kNoEffect, {Kind::kAny, Kind::kAny}, 1},
    {"cleanable", Fact::kCleanable, {Kind::kObject, Kind::kAny}, 1},
    {"coolable", Fact::kCoolable, {Kind::kObject, Kind::kAny}, 1},
    {"examined", Fact::kNoEffect, {Kind::kLocation, Kind::kAny}, 1},
    {"full", Fact::kNoEffect, {Kind::kReceptacle, Kind::kAny}, 1},
    {"heatable", Fact::kHeatable, {Kind::kObject, Kind::kAny}, 1},
    {"holds", Fact::kHolds, {Kind::kAgent, Kind::kObject}, 2},
    {"holdsany", Fact::kHoldsAny, {Kind::kAgent, Kind::kAny}, 1},
    {"holdsanyreceptacleobject", Fact::kNoEffect, {Kind::kAgent, Kind::kAny}, 1},
    {"inreceptacle", Fact::kInReceptacle, {Kind::kObject, Kind::kReceptacle}, 2},
    {"inreceptacleobject", Fact::kInObject, {Kind::kObject, Kind::kObject}, 2},
    {"isclean", Fact::kIsClean, {Kind::kObject, Kind::kAny}, 1},
    {"iscool", Fact::kIsCool, {Kind::kObject, Kind::kAny}, 1},
    {"ishot", Fact::kIsHot, {Kind::kObject, Kind::kAny}, 1},
    {"ison", Fact::kNoEffect, {Kind::kObject, Kind::kAny}, 1},
    {"isreceptacleobject", Fact::kIsContainer, {Kind::kObject, Kind::kAny}, 1},
    {"isreceptacleobjectfull", Fact::kNoEffect, {Kind::kObject, Kind::kAny}, 1},
    {"issliced", Fact::kIsSliced, {Kind::kObject, Kind::kAny}, 1},
    {"istoggled", Fact::kIsToggled, {Kind::kObject, Kind::kAny}, 1},
    {"moveable", Fact::kNoEffect, {Kind::kObject, Kind::kAny}, 1},
    {"objectatlocation", Fact::kObjectAtLocation, {Kind::kObject, Kind::kLocation}, 2},
    {"objecttype", Fact::kObjectType, {Kind::kObject, Kind::kObjectType}, 2},
    {"openable", Fact::kOpenable, {Kind::kReceptacle, Kind::kAny}, 1},
    {"opened", Fact::kOpened, {Kind::kReceptacle, Kind::kAny}, 1},
    {"pickupable", Fact::kPickupable, {Kind::kObject, Kind::kAny}, 1},
    {"receptacleatlocation", Fact::kReceptacleAtLocation, {Kind::kReceptacle, Kind::kLocation}, 2},
    {"receptacletype", Fact::kReceptacleType, {Kind::kReceptacle, Kind::kReceptacleType}, 2},
    {"sliceable", Fact::kSliceable, {Kind::kObject, Kind::kAny}, 1},
    {"toggleable", Fact::kToggleable, {Kind::kObject, Kind::kAny}, 1},
    {"wasinreceptacle", Fact::kNoEffect, {Kind::kObject, Kind::kReceptacle}, 2},
}};

const Predicate* FindPredicate(std::string_view name) {
  const auto it = std::lower_bound(kPredicates.begin(), kPredicates.end(), name,
                                   [](const Predicate& p, std::string_view n) { return p.name < n; });
  return it != kPredicates.end() && it->name == name ? &*it : nullptr;
}

struct Symbol {
  std::string_view id;
  Kind kind;
  bool in_fact = false;         // the original names only what some fact mentions
  std::uint16_t index = kNone;  // among the game's things of its kind
  std::string name;
};

struct StatedFact {
  Fact fact;
  std::uint32_t first, second;  // symbols
  std::uint32_t offset;
};

constexpr std::size_t kMaxIdBytes = 200;

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The id as ALFWorld writes it for people: "a_bar__minus_00_dot_5" is "a|-00.5".
std::string Demangled(std::string_view id) {
  std::string text(id);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kCodes = {
      {{"_bar_", "|"}, {"_minus_", "-"}, {"_plus_", "+"}, {"_dot_", "."}, {"_comma_", ","}}};
  for (const auto& [from, to] : kCodes) text = Replaced(std::move(text), from, to);
  return text;
}

class Reader {
 public:
  Reader(std::string_view text, bool sinks_clean, Game* game) : tree_(text), sinks_clean_(sinks_clean), game_(game) {}

  void Read() {
    std::uint32_t objects = 0, init = 0, goal = 0;
    FindParts(&objects, &init, &goal);
    ReadSymbols(objects);
    ReadFacts(init);
    NameSymbols();
    CollectThings();
    ApplyStaticFacts();
    ApplyStateFacts();
    ReadGoal(tree_, goal, game_);
  }

 private:
  [[noreturn]] void Fail(std::uint32_t node, const std::string& reason) const {
    throw TextError{tree_.Offset(node), reason};
  }

  void FindParts(std::uint32_t* objects, std::uint32_t* init, std::uint32_t* goal) const {
    const std::uint32_t root = tree_.Root();
    if (tree_.Head(root) != "define") Fail(root, "expected (define ...)");
    bool problem = false, domain = false;
    for (std::uint32_t part = tree_.Next(tree_.FirstChild(root)); part != 0; part = tree_.Next(part)) {
      const std::string_view head = tree_.Head(part);
      const auto once = [&](std::uint32_t* slot) {
        if (*slot != 0) Fail(part, "the part (" + std::string(head) + " ...) comes twice");
        *slot = part;
      };
      if (head == "problem") {
        problem = true;
      } else if (head == ":domain") {
        const std::uint32_t value = tree_.Next(tree_.FirstChild(part));
        if (value == 0 || tree_.IsList(value) || tree_.Token(value) != "alfred")
          Fail(part, "expected (:domain alfred), got " + Quote(tree_.Canonical(part)));
        domain = true;
      } else if (head == ":objects") {
        once(objects);
      } else if (head == ":init") {
        once(init);
      } else if (head == ":goal") {
        once(goal);
      } else if (head != ":metric" && head != ":requirements") {
        Fail(part, "unknown part " + (head.empty() ? tree_.Describe(part) : Quote(head)) +
                       "; known: problem, :domain, :objects, :init, :goal, :metric, :requirements");
      }
    }
    const auto need = [&](bool have, const char* part) {
      if (!have) Fail(root, std::string("the problem has no part (") + part + " ...)");
    };
    need(problem, "problem");
    need(domain, ":domain");
    need(*objects != 0, ":objects");
    need(*init != 0, ":init");
    need(*goal != 0, ":goal");
  }

  void ReadSymbols(std::uint32_t part) {
    std::vector<std::uint32_t> pending;
    for (std::uint32_t node = tree_.Next(tree_.FirstChild(part)); node != 0; node = tree_.Next(node)) {
      if (tree_.IsList(node)) Fail(node, "expected an id or '- type' in (:objects ...), got a list");
      if (tree_.Token(node) != "-") {
        pending.push_back(node);
        continue;
      }
      const std::uint32_t type = tree_.Next(node);
      const auto kind = type == 0 || tree_.IsList(type)
                            ? kKindNames.end()
                            : std::find(kKindNames.begin(), kKindNames.end(), tree_.Token(type));
      if (kind == kKindNames.end()) {
        Fail(node, "expected one of the types agent, location, receptacle, object, rtype, otype after '-', got " +
                       (type == 0 ? "nothing" : tree_.Describe(type)));
      }
      for (const std::uint32_t id : pending) AddSymbol(id, static_cast<Kind>(kind - kKindNames.begin()));
      pending.clear();
      node = type;
    }
    if (!pending.empty()) Fail(pending.front(), tree_.Describe(pending.front()) + " has no '- type'");
    if (agents_ != 1) Fail(part, "expected exactly one agent, got " + std::to_string(agents_));
  }

  void AddSymbol(std::uint32_t node, Kind kind) {
    const std::string_view id = tree_.Token(node);
    if (id.size() > kMaxIdBytes) Fail(node, "an id longer than " + std::to_string(kMaxIdBytes) + " characters");
    for (const char c : id) {
      if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.')
        Fail(node, "the id " + Quote(id) + " has a character other than letters, digits, '_', '-', '.'");
    }
    if (!symbol_of_.emplace(id, static_cast<std::uint32_t>(symbols_.size())).second)
      Fail(node, "the id " + Quote(id) + " is declared twice");
    symbols_.push_back({id, kind, false, kNone, {}});
    if (kind == Kind::kAgent) ++agents_;
  }

  void ReadFacts(std::uint32_t part) {
    for (std::uint32_t node = tree_.Next(tree_.FirstChild(part)); node != 0; node = tree_.Next(node)) {
      const std::string_view head = tree_.Head(node);
      if (head.empty())
        Fail(node, "expected a fact such as (openable ...) in (:init ...), got " + tree_.Describe(node));
      if (head == "=") continue;  // costs, which planning uses and playing does not
      const Predicate* predicate = FindPredicate(head);
      if (predicate == nullptr) Fail(node, "unknown predicate " + Quote(head) + " in (:init ...)");
      std::array<std::uint32_t, 2> args = {0, 0};
      std::uint32_t arity = 0;
      for (std::uint32_t arg = tree_.Next(tree_.FirstChild(node)); arg != 0; arg = tree_.Next(arg), ++arity) {
        if (arity == predicate->arity) {
          ++arity;
          break;
        }
        if (tree_.IsList(arg)) Fail(arg, "expected an id, got a list");
        const auto found = symbol_of_.find(tree_.Token(arg));
        if (found == symbol_of_.end())
          Fail(arg, "the id " + tree_.Describe(arg) + " is not declared in (:objects ...)");
        Symbol& symbol = symbols_[found->second];
        const Kind kind = predicate->kinds[arity];
        if (kind != Kind::kAny && symbol.kind != kind) {
          Fail(arg, "argument " + std::to_string(arity + 1) + " of " + Quote(head) + " must be of type " +
                        std::string(kKindNames[static_cast<std::size_t>(kind)]) + ", " + Quote(symbol.id) + " is " +
                        std::string(kKindNames[static_cast<std::size_t>(symbol.kind)]));
        }
        symbol.in_fact = true;
        args[arity] = found->second;
      }
      if (arity != predicate->arity) {
        Fail(node, "expected " + std::to_string(predicate->arity) + " argument(s) of " + Quote(head) + ", got " +
                       (arity > predicate->arity ? "more" : std::to_string(arity)));
      }
      facts_.push_back({predicate->fact, args[0], args[1], tree_.Offset(node)});
    }
  }

  // Numbers things of one name from the highest number down in the order of their ids, as the original does.
  void NameSymbols() {
    for (std::uint32_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i].in_fact) ordered_.push_back(i);
    }
    std::sort(ordered_.begin(), ordered_.end(),
              [this](std::uint32_t a, std::uint32_t b) { return symbols_[a].id < symbols_[b].id; });
    std::unordered_map<std::string, std::size_t> remaining;
    const auto base_of = [this](std::uint32_t i) {
      const std::string_view id = symbols_[i].id;
      std::string base(id.substr(0, id.find("_bar_")));
      if (id.find("basin") != std::string_view::npos) base += "basin";
      return base;
    };
    const auto numbered = [this](std::uint32_t i) { return symbols_[i].id.find("_bar_") != std::string_view::npos; };
    for (const std::uint32_t i : ordered_) {
      if (numbered(i)) ++remaining[base_of(i)];
    }
    for (const std::uint32_t i : ordered_) {
      Symbol& symbol = symbols_[i];
      if (!numbered(i)) {
        symbol.name = Demangled(symbol.id) + " ";
        continue;
      }
      const std::string base = base_of(i);
      const std::string plain(symbol.id.substr(0, symbol.id.find("_bar_")));
      if (Demangled(plain) != plain)
        throw TextError{0, "the id " + Quote(symbol.id) + " has a coded character before its first '_bar_'"};
      symbol.name = base + " " + std::to_string(remaining[base]--);
    }
  }

  void CollectThings() {
    for (const std::uint32_t i : ordered_) {
      Symbol& symbol = symbols_[i];
      const auto take = [&symbol](std::size_t count, std::size_t max, const char* what) {
        if (count >= max) throw TextError{0, "more than " + std::to_string(max) + " " + what};
        symbol.index = static_cast<std::uint16_t>(count);
      };
      const std::string id(symbol.id);
      if (symbol.kind == Kind::kObject) {
        take(game_->objects.size(), kMaxObjects, "objects");
        Object object{};
        object.id = id;
        object.name = symbol.name;
        game_->objects.push_back(std::move(object));
      } else if (symbol.kind == Kind::kReceptacle) {
        take(game_->receptacles.size(), kMaxReceptacles, "receptacles");
        Receptacle receptacle{};
        receptacle.id = id;
        receptacle.name = symbol.name;
        game_->receptacles.push_back(std::move(receptacle));
      } else if (symbol.kind == Kind::kLocation) {
        take(game_->locations.size(), kMaxLocations, "locations");
        game_->locations.push_back({id, symbol.name, {}});
      }
    }
    auto& by_name = game_->by_name;
    for (std::size_t r = 0; r < game_->receptacles.size(); ++r)
      by_name.push_back({true, static_cast<std::uint16_t>(r)});
    for (std::size_t o = 0; o < game_->objects.size(); ++o) by_name.push_back({false, static_cast<std::uint16_t>(o)});
    const auto name_of = [this](NamedThing thing) -> const std::string& {
      return thing.is_receptacle ? game_->receptacles[thing.index].name : game_->objects[thing.index].name;
    };
    std::sort(by_name.begin(), by_name.end(), [&](NamedThing a, NamedThing b) { return name_of(a) < name_of(b); });
    for (std::size_t rank = 0; rank < by_name.size(); ++rank) {
      const NamedThing thing = by_name[rank];
      (thing.is_receptacle ? game_->receptacles[thing.index].rank : game_->objects[thing.index].rank) =
          static_cast<std::uint16_t>(rank);
    }
  }

  void ApplyStaticFacts() {
    std::set<std::pair<std::string_view, std::string_view>> can_contain;
    for (const StatedFact& fact : facts_) {
      const Symbol& first = symbols_[fact.first];
      const Symbol& second = symbols_[fact.second];
      const auto object = [&]() -> Object& { return game_->objects[first.index]; };
      const auto receptacle = [&]() -> Receptacle& { return game_->receptacles[first.index]; };
      const auto state_once = [&](bool stated, const char* what) {
        if (stated) throw TextError{fact.offset, Quote(first.id) + " has two different " + what + "s, expected one"};
      };
      switch (fact.fact) {
        case Fact::kReceptacleAtLocation:
          state_once(receptacle().location != kNone && receptacle().location != second.index, "location");
          receptacle().location = second.index;
          break;
        case Fact::kReceptacleType:
          state_once(!receptacle().type.empty() && receptacle().type != second.id, "type");
          receptacle().type = second.id;
          break;
        case Fact::kObjectType:
          state_once(!object().type.empty() && object().type != second.id, "type");
          object().type = second.id;
          break;
        case Fact::kInObject:
          if (fact.first != fact.second) game_->objects[second.index].inner.push_back(first.index);
          break;
        case Fact::kCanContain: can_contain.emplace(first.id, second.id); break;
        case Fact::kOpenable: receptacle().openable = true; break;
        case Fact::kIsContainer: object().is_container = true; break;
        case Fact::kCleanable: object().cleanable = true; break;
        case Fact::kHeatable: object().heatable = true; break;
        case Fact::kCoolable: object().coolable = true; break;
        case Fact::kPickupable: object().pickupable = true; break;
        case Fact::kToggleable: object().toggleable = true; break;
        case Fact::kSliceable: object().sliceable = true; break;
        default: break;
      }
    }
    const std::size_t words = (game_->objects.size() + 63) / 64;
    for (Object& object : game_->objects) {
      object.is_knife = object.type == "knifetype" || object.type == "butterknifetype";
      std::sort(object.inner.begin(), object.inner.end());
      object.inner.erase(std::unique(object.inner.begin(), object.inner.end()), object.inner.end());
    }
    for (std::size_t r = 0; r < game_->receptacles.size(); ++r) {
      Receptacle& receptacle = game_->receptacles[r];
      receptacle.cleans = receptacle.type == "sinkbasintype" || (sinks_clean_ && receptacle.type == "sinktype");
      receptacle.heats = receptacle.type == "microwavetype";
      receptacle.cools = receptacle.type == "fridgetype";
      receptacle.accepts.assign(words, 0);
      for (std::size_t o = 0; o < game_->objects.size(); ++o) {
        if (can_contain.count({receptacle.type, game_->objects[o].type}) != 0)
          receptacle.accepts[o / 64] |= 1ULL << (o % 64);
      }
      if (receptacle.location != kNone)
        game_->locations[receptacle.location].receptacles.push_back(static_cast<std::uint16_t>(r));
    }
    for (const NamedThing thing : game_->by_name) {
      if (thing.is_receptacle && game_->receptacles[thing.index].location != kNone)
        game_->receptacles_by_name.push_back(thing.index);
    }
  }

  void ApplyStateFacts() {
    const std::size_t ow = (game_->objects.size() + 63) / 64, rw = (game_->receptacles.size() + 63) / 64;
    StateLayout& layout = game_->layout;
    layout.object_words = ow;
    layout.receptacle_words = rw;
    layout.opened = 1;
    layout.held = layout.opened + rw;
    layout.clean = layout.held + ow;
    layout.hot = layout.clean + ow;
    layout.cool = layout.hot + ow;
    layout.sliced = layout.cool + ow;
    layout.toggled = layout.sliced + ow;
    layout.inside = layout.toggled + ow;
    layout.removed = layout.inside + ow * game_->receptacles.size();
    layout.at = layout.removed + ow * game_->receptacles.size();
    layout.size = layout.at + ow * game_->locations.size();
    auto& state = game_->initial_state;
    state.assign(layout.size, 0);
    const auto set = [&state](std::size_t base, std::uint16_t index) {
      state[base + index / 64U] |= 1ULL << (index % 64U);
    };
    std::uint16_t agent_at = kNone;
    for (const StatedFact& fact : facts_) {
      const std::uint16_t first = symbols_[fact.first].index, second = symbols_[fact.second].index;
      switch (fact.fact) {
        case Fact::kAtLocation:
          if (agent_at != kNone && agent_at != second) throw TextError{fact.offset, "the agent is at two locations"};
          agent_at = second;
          break;
        case Fact::kObjectAtLocation: set(layout.at + second * ow, first); break;
        case Fact::kInReceptacle: set(layout.inside + second * ow, first); break;
        case Fact::kOpened: set(layout.opened, first); break;
        case Fact::kHolds: set(layout.held, second); break;
        case Fact::kHoldsAny: state[0] |= kHoldsAny; break;
        case Fact::kIsClean: set(layout.clean, first); break;
        case Fact::kIsHot: set(layout.hot, first); break;
        case Fact::kIsCool: set(layout.cool, first); break;
        case Fact::kIsSliced: set(layout.sliced, first); break;
        case Fact::kIsToggled: set(layout.toggled, first); break;
        default: break;
      }
    }
    if (agent_at == kNone) throw TextError{0, "no fact (atLocation ...) says where the agent is"};
    state[0] |= agent_at;
  }

  SExpr tree_;
  bool sinks_clean_;
  Game* game_;
  std::size_t agents_ = 0;
  std::vector<Symbol> symbols_;
  std::unordered_map<std::string_view, std::uint32_t> symbol_of_;
  std::vector<StatedFact> facts_;
  std::vector<std::uint32_t> ordered_;  // symbols in facts, by id
};

}  // namespace

void ReadProblem(std::string_view problem, bool sinks_clean, Game* game) { Reader(problem, sinks_clean, game).Read(); }

}  // namespace embodied_mem::alfworld
