// One file of the event log as bytes: a header, then records. docs/formats.md has it byte by byte.
//
// A record tells which records were acknowledged before it was written. So a reader can tell a write that was never
// finished (nothing behind it relies on it: cut) from damage to what was promised to be kept (an error).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace embodied_mem {

constexpr std::uint32_t kLogVersion = 1;
constexpr std::size_t kMaxPayloadBytes = std::size_t{1} << 28U;

struct LogRecord {
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;  // the last record acknowledged before this one was written
  std::uint32_t kind = 0;
  std::string_view payload;
};

void PutSegmentHeader(std::string* out, std::string_view scope, std::uint64_t first_sequence);
void PutRecord(std::string* out, const LogRecord& record);

struct SegmentHeader {
  std::string scope;
  std::uint64_t first_sequence = 1;
  std::size_t bytes = 0;
};

// Throws StorageError that names `path`: no segment, another version, damaged.
SegmentHeader ReadSegmentHeader(std::string_view bytes, const std::string& path);

struct SegmentScan {
  std::uint64_t last_sequence = 0;  // of the valid records in front; first_sequence - 1 when there are none
  std::size_t valid_bytes = 0;      // header and these records
  std::string damage;               // why the next record is not valid; empty: the file ends there
  std::uint64_t behind = 0;         // valid records found behind the damage
  std::uint64_t promised = 0;       // the last record that one of these calls acknowledged
};

// Visits the valid records from the front and looks at what is behind the first that is not. `payload`s point into
// `bytes`.
SegmentScan ScanSegment(std::string_view bytes, const SegmentHeader& header,
                        const std::function<void(const LogRecord&)>& visit);

}  // namespace embodied_mem
