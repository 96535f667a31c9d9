// The native tests of the knowledge graph, called by main.cpp.
#pragma once

namespace embodied_mem {

void TestBlockPool();
void TestKnowledgeGraph();
void TestGraphVectors();

}  // namespace embodied_mem
