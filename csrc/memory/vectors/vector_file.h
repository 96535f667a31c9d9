// The file of a vector index; docs/vectors.md has it byte by byte.
#pragma once

#include <memory>
#include <string>

#include "memory/vectors/vector_index.h"

namespace embodied_mem {

struct VectorFileHead {
  VectorIndexOptions options;
  IndexKind kind;
};

// Writes beside `path`, syncs, renames. The store has no removed vectors. Throws StorageError.
void WriteVectorFile(const std::string& path, const VectorFileHead& head, const VectorStore& store);
// Throws StorageError with what is wrong and where.
std::unique_ptr<VectorStore> ReadVectorFile(const std::string& path, VectorFileHead* head);

}  // namespace embodied_mem
