// A whole knowledge graph as bytes and back: same ids, past facts, sources, rules; what was forgotten is not in them.
//
// docs/formats.md has the format. The same graph always gives the same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "memory/graph/knowledge_graph.h"

namespace embodied_mem {

constexpr std::uint32_t kGraphBytesVersion = 1;

// `label` comes back from GraphFromBytes: whose graph it is.
std::string GraphToBytes(const Snapshot& snapshot, std::string_view label);

// Throws InvalidInputError with the offset for anything that GraphToBytes does not write.
std::unique_ptr<KnowledgeGraph> GraphFromBytes(std::string_view bytes, std::string* label);

}  // namespace embodied_mem
