// Parenthesised lists, the syntax of PDDL: `;` starts a comment, case does not matter, ASCII only.
//
// The tree is flat: nodes in one vector in the order of the text, so that no input can exhaust the stack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace embodied_mem::alfworld {

constexpr int kMaxNesting = 64;

struct Node {
  std::uint32_t offset;       // byte offset in the text
  std::uint32_t length;       // of the token; 0 marks a list
  std::uint32_t first_child;  // index of a list's first child, 0 when it has none
  std::uint32_t next;         // index of the next sibling, 0 for the last
};

// One parsed text with exactly one list at top level. Tokens are lower-cased copies owned by this object.
class SExpr {
 public:
  // Throws TextError.
  explicit SExpr(std::string_view text);

  // Index of the top-level list.
  std::uint32_t Root() const { return 1; }
  bool IsList(std::uint32_t node) const { return nodes_[node].length == 0; }
  std::string_view Token(std::uint32_t node) const { return {text_.data() + nodes_[node].offset, nodes_[node].length}; }
  std::uint32_t FirstChild(std::uint32_t node) const { return nodes_[node].first_child; }
  std::uint32_t Next(std::uint32_t node) const { return nodes_[node].next; }
  std::uint32_t Offset(std::uint32_t node) const { return nodes_[node].offset; }
  // The head of a list when it is a token, else "".
  std::string_view Head(std::uint32_t list) const;
  // The token, or "a list": for messages.
  std::string Describe(std::uint32_t node) const;
  // The list in one line with single blanks, comments gone, lower case: equal for texts of equal meaning.
  std::string Canonical(std::uint32_t node) const;

 private:
  std::string text_;  // lower-cased
  std::vector<Node> nodes_;
};

}  // namespace embodied_mem::alfworld
