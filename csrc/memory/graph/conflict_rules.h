// Which facts cannot be true together, as data.
//
// A rule is one slot that every node has and that at most one current fact may fill. Its members say which facts fill
// it, and for which of their two nodes:
//
//   place: an object is in one place     {in, subject} {on, subject} {holds, object}
//   hand: a hand holds one thing         {holds, subject}
//   door: open excludes closed           {is, subject, objects: open, closed}
//
// A new fact that fills a slot ends the fact that filled it before.
#pragma once

#include <string>
#include <vector>

namespace embodied_mem {

struct ConflictRule {
  enum class Role { kSubject, kObject };
  struct Member {
    std::string relation;
    Role role = Role::kSubject;        // the end of the fact whose slot is filled
    std::vector<std::string> objects;  // only facts whose object has one of these names; empty: all
  };
  std::string name;
  std::vector<Member> members;
};

struct ConflictRules {
  std::vector<ConflictRule> rules;
};

// Throws InvalidInputError for a rule without a name or members, a name used twice, or a member given twice.
void CheckRules(const ConflictRules& rules);

}  // namespace embodied_mem
