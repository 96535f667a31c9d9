#include "memory/vectors/vector_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/atomic_file.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "memory/vectors/exact_store.h"
#include "memory/vectors/hnsw_store.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "vector files are little-endian and written as memory has it");

namespace embodied_mem {
namespace {

constexpr char kMagic[8] = {'E', 'M', 'V', 'E', 'C', 'T', 'O', 'R'};
constexpr std::uint32_t kVersion = 1;

struct Header {
  char magic[8];
  std::uint32_t version, kind, metric, dim, connectivity, ef_construction, automatic, entry;
  std::uint64_t count, num_insertions, num_links;
};
static_assert(sizeof(Header) == 64, "no padding");

// What killed writers of an earlier release left beside the file, `NAME.partial-PID`: it may hold vectors removed since.
void RemoveOldLeftovers(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "./" : path.substr(0, slash + 1);
  const std::string start = path.substr(slash + 1) + ".partial-";
  DIR* const listed = opendir(folder.c_str());
  if (listed == nullptr) return;
  while (const dirent* entry = readdir(listed)) {
    const std::string name = entry->d_name;
    const std::string digits = name.substr(std::min(name.size(), start.size()));
    if (name.compare(0, start.size(), start) != 0 || digits.empty() || digits.size() > 7 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    const long writer = std::stol(digits);
    const bool alive = writer != getpid() && (kill(static_cast<pid_t>(writer), 0) == 0 || errno == EPERM);
    if (!alive) unlink((folder + name).c_str());
  }
  closedir(listed);
}

class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path) {}

  void Put(const void* data, std::size_t bytes) {
    const std::string_view text(static_cast<const char*>(data), bytes);
    crc_ = Crc32c(text, crc_);
    file_.Write(text);
  }
  // The checksum of what was put since the last one.
  void EndSection() {
    const std::uint32_t crc = crc_;
    file_.Write({reinterpret_cast<const char*>(&crc), sizeof(crc)});
    crc_ = 0;
  }
  void Finish() { file_.Commit(); }

 private:
  AtomicFile file_;
  std::uint32_t crc_ = 0;
};

std::string ReadFile(const std::string& path) {
  const auto problem = [&path](const char* what) {
    return StorageError(std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw problem("open");
  const struct Close {
    int file;
    ~Close() { ::close(file); }
  } close{file};
  struct stat about{};
  if (::fstat(file, &about) != 0) throw problem("look at");
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t count = ::read(file, &bytes[have], bytes.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw problem("read");
    if (count == 0) break;  // cut meanwhile
    have += static_cast<std::size_t>(count);
  }
  bytes.resize(have);
  return bytes;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), bytes_(ReadFile(path)) {}
  std::size_t size() const { return bytes_.size(); }
  const std::string& path() const { return path_; }
  std::string_view bytes() const { return bytes_; }

  // A section of so many bytes, whose checksum holds.
  template <typename T>
  void Section(const char* what, T* values, std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes + sizeof(std::uint32_t) > bytes_.size() - at_)
      Bad(std::string("ends within its ") + what + ": " + std::to_string(bytes_.size()) + " bytes");
    const std::string_view section = std::string_view(bytes_).substr(at_, bytes);
    std::uint32_t crc = 0;
    std::memcpy(&crc, bytes_.data() + at_ + bytes, sizeof(crc));
    if (crc != Crc32c(section))
      Bad(std::string("its ") + what + " are damaged: the checksum at byte " + std::to_string(at_ + bytes) +
          " does not hold");
    if (bytes > 0) std::memcpy(values, section.data(), bytes);
    at_ += bytes + sizeof(crc);
  }
  [[noreturn]] void Bad(const std::string& what) const {
    throw StorageError(path_ + " cannot be read as a vector index: " + what + ". Save it again, or restore a copy");
  }

 private:
  const std::string path_, bytes_;
  std::size_t at_ = 0;
};

Header ReadHeader(Reader* reader) {
  Header header;
  const std::size_t start = sizeof(kMagic) + sizeof(kVersion);
  if (reader->size() < start || std::memcmp(reader->bytes().data(), kMagic, sizeof(kMagic)) != 0)
    reader->Bad("it does not begin with EMVECTOR");
  std::uint32_t version = 0;
  std::memcpy(&version, reader->bytes().data() + sizeof(kMagic), sizeof(version));
  if (version != kVersion)
    reader->Bad("its format is version " + std::to_string(version) + ", this release reads " +
                std::to_string(kVersion));
  reader->Section("first 64 bytes", &header, 1);
  if (header.kind == 3)
    throw StorageError(reader->path() +
                       " holds an inverted file (kind \"ivf\"), which this release does not have: build it again from "
                       "what its vectors were made of, index = VectorIndex(" +
                       std::to_string(header.dim) + "), index.add(ids, vectors), index.save(path)");
  const bool fits = header.kind >= 1 && header.kind <= 2 && header.metric <= 1 && header.automatic <= 1 &&
                    header.dim >= 1 && header.dim <= 65536 && header.connectivity >= 2 && header.connectivity <= 256 &&
                    header.ef_construction >= 1 && header.ef_construction <= 65536 &&
                    header.count <= VectorIndex::kMaxSize;
  if (!fits) reader->Bad("its header holds a number out of range");
  // Sizes first: nothing is allocated for numbers that the file is too short for.
  const std::uint64_t more = header.kind == 1 ? 0 : header.count + 4 + 4;
  const std::uint64_t base = sizeof(Header) + 4 + header.count * 8 + 4 + header.count * header.dim * 4 + 4 + more;
  if (header.num_links > reader->size() || base + header.num_links * 4 != reader->size())
    reader->Bad("expected " + std::to_string(base + header.num_links * 4) + " bytes by its header, got " +
                std::to_string(reader->size()));
  return header;
}

void CheckFinite(const Reader& reader, const std::vector<float>& values, const char* what) {
  for (const float value : values) {
    if (!(std::fabs(value) <= 1e18F)) reader.Bad(std::string(what) + " is not finite");
  }
}

}  // namespace

void WriteVectorFile(const std::string& path, const VectorFileHead& head, const VectorStore& store) {
  const auto* hnsw = dynamic_cast<const HnswStore*>(&store);
  const HnswParts graph = hnsw == nullptr ? HnswParts() : hnsw->Parts();
  const auto narrow = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.kind = static_cast<std::uint32_t>(head.kind);
  header.metric = static_cast<std::uint32_t>(head.options.metric);
  header.dim = narrow(head.options.dim);
  header.connectivity = narrow(head.options.connectivity);
  header.ef_construction = narrow(head.options.ef_construction);
  header.automatic = head.options.kind ? 0 : 1;
  header.entry = graph.entry;
  header.count = store.size();
  header.num_insertions = graph.num_insertions;
  header.num_links = graph.links.size();
  RemoveOldLeftovers(path);
  Writer writer(path);
  writer.Put(&header, sizeof(header));
  writer.EndSection();
  writer.Put(store.slot_ids().data(), store.size() * sizeof(VectorId));
  writer.EndSection();
  constexpr std::size_t kRows = 256;
  std::vector<float> rows(kRows * store.dim());
  for (std::size_t begin = 0; begin < store.size(); begin += kRows) {
    const std::size_t end = std::min(store.size(), begin + kRows);
    for (std::size_t slot = begin; slot < end; ++slot)
      store.CopySlot(static_cast<Slot>(slot), rows.data() + (slot - begin) * store.dim());
    writer.Put(rows.data(), (end - begin) * store.dim() * sizeof(float));
  }
  writer.EndSection();
  if (hnsw != nullptr) {
    writer.Put(graph.levels.data(), graph.levels.size());
    writer.EndSection();
    writer.Put(graph.links.data(), graph.links.size() * sizeof(std::uint32_t));
    writer.EndSection();
  }
  writer.Finish();
}

std::unique_ptr<VectorStore> ReadVectorFile(const std::string& path, VectorFileHead* head) {
  Reader reader(path);
  const Header header = ReadHeader(&reader);
  head->kind = static_cast<IndexKind>(header.kind);
  head->options.dim = header.dim;
  head->options.metric = static_cast<Metric>(header.metric);
  head->options.connectivity = header.connectivity;
  head->options.ef_construction = header.ef_construction;
  head->options.kind = header.automatic != 0 ? std::nullopt : std::optional<IndexKind>(head->kind);
  std::vector<VectorId> ids(header.count);
  std::vector<float> rows(header.count * header.dim);
  reader.Section("ids", ids.data(), ids.size());
  reader.Section("vectors", rows.data(), rows.size());
  for (const VectorId id : ids) {
    if (id < 0) reader.Bad("an id is negative");
  }
  CheckFinite(reader, rows, "a vector");
  if (head->kind == IndexKind::kExact) {
    auto store = std::make_unique<ExactStore>(header.dim);
    const std::vector<float> scales(ids.size(), 1.0F);
    store->Add({ids.data(), rows.data(), scales.data(), ids.size()}, 1);
    if (store->size() != ids.size()) reader.Bad("an id is there twice");
    return store;
  }
  try {
    HnswParts parts;
    parts.entry = header.entry;
    parts.num_insertions = header.num_insertions;
    parts.levels.resize(header.count);
    parts.links.resize(header.num_links);
    reader.Section("levels", parts.levels.data(), parts.levels.size());
    reader.Section("links", parts.links.data(), parts.links.size());
    return std::make_unique<HnswStore>(header.dim, header.connectivity, header.ef_construction, std::move(ids), parts,
                                       rows.data());
  } catch (const InvalidInputError& error) {
    reader.Bad(error.what());
  }
}

}  // namespace embodied_mem
