// Tests of the event log, and of graphs as bytes and forgetting in them.
#pragma once

namespace embodied_mem {

void TestEventLog();
void TestGraphBytes();

}  // namespace embodied_mem
