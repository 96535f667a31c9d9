// Checks of what callers give to a knowledge graph; each throws InvalidInputError that names `where`. Internal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "memory/graph/knowledge_graph.h"

namespace embodied_mem {

// A name of a node, relation or type: not empty, at most kMaxNameBytes, UTF-8.
bool IsName(std::string_view name);
void CheckName(std::string_view name, const std::string& where);
void CheckNode(std::size_t node, std::size_t num_nodes, const std::string& where);
// Throws: the node was forgotten.
[[noreturn]] void ThrowForgotten(std::size_t node, const std::string& where);
// That `more` of `what` fit beside `count`.
void CheckRoom(std::size_t count, std::size_t more, const char* what);

void CheckKHop(const KHopOptions& options, std::size_t num_relations);

}  // namespace embodied_mem
