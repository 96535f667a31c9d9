// The class of a thing by the name of its node: "home/mug 1" is a "mug", as `class_of` of the Python readers has it.
#pragma once

#include <string_view>

namespace embodied_mem {

// What follows the last slash, without a number at its end that a space or an underscore stands before.
inline std::string_view ClassOf(std::string_view node) {
  const std::string_view name = node.substr(node.rfind('/') + 1);  // npos + 1 is 0
  const std::size_t last = name.find_last_not_of("0123456789");
  const bool numbered = last != std::string_view::npos && last + 1 < name.size();
  return numbered && (name[last] == ' ' || name[last] == '_') ? name.substr(0, last) : name;
}

}  // namespace embodied_mem
