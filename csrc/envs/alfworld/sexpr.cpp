#include "envs/alfworld/sexpr.h"

namespace embodied_mem::alfworld {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

}  // namespace

SExpr::SExpr(std::string_view text) : text_(text) {
  if (text.size() >= 0xFFFFFFFFU) throw TextError{0, "the text is larger than 4 GiB"};
  nodes_.reserve(text.size() / 12 + 16);
  nodes_.push_back({0, 0, 0, 0});   // index 0 means "none"
  std::vector<std::uint32_t> open;  // lists not yet closed
  std::vector<std::uint32_t> last;  // the last child of each of them
  const auto append = [&](std::uint32_t offset, std::uint32_t length) {
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({offset, length, 0, 0});
    if (!open.empty()) {
      if (last.back() == 0) nodes_[open.back()].first_child = index;
      else nodes_[last.back()].next = index;
      last.back() = index;
    }
    return index;
  };
  const auto size = static_cast<std::uint32_t>(text_.size());
  bool done = false;
  std::uint32_t i = 0;
  while (i < size) {
    char& c = text_[i];
    if (IsSpace(c)) {
      ++i;
    } else if (c == ';') {
      while (i < size && text_[i] != '\n') ++i;
    } else if (done) {
      throw TextError{i, "text after the closing parenthesis of the definition"};
    } else if (c == '(') {
      if (open.size() >= kMaxNesting)
        throw TextError{i, "nested deeper than " + std::to_string(kMaxNesting) + " levels"};
      const std::uint32_t index = append(i, 0);
      open.push_back(index);
      last.push_back(0);
      ++i;
    } else if (c == ')') {
      if (open.empty()) throw TextError{i, "a closing parenthesis without its opening one"};
      open.pop_back();
      last.pop_back();
      done = open.empty();
      ++i;
    } else {
      if (open.empty()) throw TextError{i, "expected '(', got " + Quote(std::string_view(text_).substr(i, 1))};
      const std::uint32_t start = i;
      for (; i < size; ++i) {
        char& t = text_[i];
        if (IsSpace(t) || t == '(' || t == ')' || t == ';') break;
        if (static_cast<unsigned char>(t) < 0x21 || static_cast<unsigned char>(t) > 0x7E)
          throw TextError{i, "a character that PDDL does not know (printable ASCII only)"};
        if (t >= 'A' && t <= 'Z') t = static_cast<char>(t - 'A' + 'a');
      }
      append(start, i - start);
    }
  }
  if (!open.empty()) throw TextError{size, "the text ends inside a list; is the file truncated?"};
  if (!done) throw TextError{size, "expected a definition in parentheses, got an empty text"};
}

std::string_view SExpr::Head(std::uint32_t list) const {
  if (!IsList(list)) return {};
  const std::uint32_t child = FirstChild(list);
  return child != 0 && !IsList(child) ? Token(child) : std::string_view{};
}

std::string SExpr::Describe(std::uint32_t node) const { return IsList(node) ? "a list" : Quote(Token(node)); }

std::string SExpr::Canonical(std::uint32_t node) const {
  std::string out;
  std::vector<std::uint32_t> stack{node};  // what remains to be written; 0 stands for a closing parenthesis
  while (!stack.empty()) {
    const std::uint32_t current = stack.back();
    stack.pop_back();
    if (current == 0) {
      out += ')';
      continue;
    }
    if (current != node && Next(current) != 0) stack.push_back(Next(current));
    if (!out.empty() && out.back() != '(') out += ' ';
    if (!IsList(current)) {
      out += Token(current);
      continue;
    }
    out += '(';
    stack.push_back(0);
    if (FirstChild(current) != 0) stack.push_back(FirstChild(current));
  }
  return out;
}

}  // namespace embodied_mem::alfworld
