#include "memory/storage/log_segment.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/text.h"

namespace embodied_mem {
namespace {

constexpr std::string_view kMagic = "EMEMLOG\n";
constexpr std::size_t kFixedHeader = 24;   // magic, version, scope's length, first sequence number
constexpr std::size_t kRecordHeader = 28;  // length, checksum, sequence, acknowledged, kind

// The record at `offset`, or why there is none.
std::string Parse(std::string_view bytes, std::size_t offset, LogRecord* record) {
  const std::size_t left = bytes.size() - offset;
  if (left < kRecordHeader)
    return "expected a record of at least " + std::to_string(kRecordHeader) + " bytes, got " + std::to_string(left);
  const auto length = NumberAt<std::uint32_t>(bytes, offset);
  if (length > kMaxPayloadBytes) return "expected a record, got the impossible length " + std::to_string(length);
  if (left - kRecordHeader < length)
    return "expected a record of " + std::to_string(kRecordHeader + length) + " bytes, got " + std::to_string(left);
  const auto checksum = NumberAt<std::uint32_t>(bytes, offset + 4);
  if (Crc32c(bytes.substr(offset + 8, kRecordHeader - 8 + length), Crc32c(bytes.substr(offset, 4))) != checksum)
    return "the checksum of the record of " + std::to_string(kRecordHeader + length) + " bytes does not match";
  record->sequence = NumberAt<std::uint64_t>(bytes, offset + 8);
  record->acknowledged = NumberAt<std::uint64_t>(bytes, offset + 16);
  record->kind = NumberAt<std::uint32_t>(bytes, offset + 24);
  record->payload = bytes.substr(offset + kRecordHeader, length);
  return "";
}

}  // namespace

void PutSegmentHeader(std::string* out, std::string_view scope, std::uint64_t first_sequence) {
  const std::size_t begin = out->size();
  out->append(kMagic);
  PutNumber(out, kLogVersion);
  PutNumber(out, static_cast<std::uint32_t>(scope.size()));
  PutNumber(out, first_sequence);
  out->append(scope);
  PutNumber(out, Crc32c(std::string_view(*out).substr(begin)));
}

void PutRecord(std::string* out, const LogRecord& record) {
  std::string head;
  PutNumber(&head, static_cast<std::uint32_t>(record.payload.size()));
  std::string rest;
  PutNumber(&rest, record.sequence);
  PutNumber(&rest, record.acknowledged);
  PutNumber(&rest, record.kind);
  PutNumber(&head, Crc32c(record.payload, Crc32c(rest, Crc32c(head))));
  out->append(head).append(rest).append(record.payload);
}

SegmentHeader ReadSegmentHeader(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kFixedHeader || bytes.substr(0, kMagic.size()) != kMagic)
    throw StorageError(path + ": expected a segment of an event log, which begins with " + Quote(kMagic) + ", got " +
                       Quote(bytes.substr(0, kMagic.size())));
  const auto version = NumberAt<std::uint32_t>(bytes, 8);
  if (version != kLogVersion)
    throw StorageError(path + ": expected format version " + std::to_string(kLogVersion) + ", got " +
                       std::to_string(version) + "; open it with the release of embodied_mem that wrote it");
  const auto length = NumberAt<std::uint32_t>(bytes, 12);
  if (bytes.size() - kFixedHeader < std::size_t{length} + 4 ||
      Crc32c(bytes.substr(0, kFixedHeader + length)) != NumberAt<std::uint32_t>(bytes, kFixedHeader + length))
    throw StorageError(path + ": the header at offset 0 is damaged");
  return {std::string(bytes.substr(kFixedHeader, length)), NumberAt<std::uint64_t>(bytes, 16),
          kFixedHeader + length + 4};
}

SegmentScan ScanSegment(std::string_view bytes, const SegmentHeader& header,
                        const std::function<void(const LogRecord&)>& visit) {
  SegmentScan scan;
  scan.last_sequence = header.first_sequence - 1;
  scan.valid_bytes = header.bytes;
  LogRecord record;
  while (scan.valid_bytes < bytes.size()) {
    scan.damage = Parse(bytes, scan.valid_bytes, &record);
    if (scan.damage.empty() && record.sequence != scan.last_sequence + 1)
      scan.damage =
          "expected record " + std::to_string(scan.last_sequence + 1) + ", got " + std::to_string(record.sequence);
    if (!scan.damage.empty()) break;
    visit(record);
    ++scan.last_sequence;
    scan.valid_bytes += kRecordHeader + record.payload.size();
  }
  if (scan.damage.empty()) return scan;
  // A record behind the damage is known by its number, which makes nearly all places cheap to rule out, and its checksum.
  const std::uint64_t most = scan.last_sequence + 1 + (bytes.size() - scan.valid_bytes) / kRecordHeader;
  std::uint64_t last = scan.last_sequence;
  for (std::size_t offset = scan.valid_bytes + 1; offset + kRecordHeader <= bytes.size();) {
    const auto sequence = NumberAt<std::uint64_t>(bytes, offset + 8);
    if (sequence <= last || sequence > most || !Parse(bytes, offset, &record).empty()) {
      ++offset;
      continue;
    }
    ++scan.behind;
    scan.promised = std::max(scan.promised, record.acknowledged);
    last = sequence;
    offset += kRecordHeader + record.payload.size();
  }
  return scan;
}

}  // namespace embodied_mem
