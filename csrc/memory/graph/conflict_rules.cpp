#include "memory/graph/conflict_rules.h"

#include "core/error.h"
#include "core/text.h"
#include "memory/graph/graph_checks.h"

namespace embodied_mem {

void CheckRules(const ConflictRules& rules) {
  for (std::size_t r = 0; r < rules.rules.size(); ++r) {
    const ConflictRule& rule = rules.rules[r];
    const std::string where = "rules[" + std::to_string(r) + "]";
    CheckName(rule.name, where + ".name");
    for (std::size_t other = 0; other < r; ++other) {
      if (rules.rules[other].name == rule.name)
        throw InvalidInputError(where + ".name: expected each name once, got " + Quote(rule.name) + " twice");
    }
    if (rule.members.empty())
      throw InvalidInputError(where + " (" + Quote(rule.name) + "): expected members, got none");
    for (std::size_t m = 0; m < rule.members.size(); ++m) {
      const ConflictRule::Member& member = rule.members[m];
      const std::string place = where + ".members[" + std::to_string(m) + "]";
      CheckName(member.relation, place + ".relation");
      for (std::size_t o = 0; o < member.objects.size(); ++o)
        CheckName(member.objects[o], place + ".objects[" + std::to_string(o) + "]");
      for (std::size_t other = 0; other < m; ++other) {
        if (rule.members[other].relation == member.relation && rule.members[other].role == member.role)
          throw InvalidInputError(place + ": expected a relation once per role, got " + Quote(member.relation) +
                                  " twice; join the lists of objects");
      }
    }
  }
}

}  // namespace embodied_mem
