#include "memory/graph/graph_bytes.h"

#include <limits>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/text.h"
#include "memory/graph/graph_batch.h"
#include "memory/graph/graph_checks.h"
#include "memory/graph/graph_records.h"

namespace embodied_mem {
namespace {

constexpr std::string_view kMagic = "EMEMKGR\n";

void PutWords(std::string* out, const std::vector<std::string>& words) {
  PutNumber(out, static_cast<std::uint32_t>(words.size()));
  for (const std::string& word : words) PutText(out, word);
}

// Reads what follows the header, up to the checksum.
class GraphReader {
 public:
  explicit GraphReader(std::string_view bytes) : in_(bytes) {}

  std::unique_ptr<KnowledgeGraph> Read(std::string* label) {
    in_.Take(kMagic.size() + 4);
    *label = Utf8(in_.Text());
    auto graph = std::make_unique<KnowledgeGraph>();
    ConflictRules rules;
    {
      GraphBatch batch(graph.get());
      std::vector<std::string> relations = ReadWords(), types = ReadWords();
      rules = ReadRules();
      batch.SetWords(std::move(relations), std::move(types));
      const auto num_nodes = Count(in_.Number<std::uint64_t>());
      const auto num_facts = Count(in_.Number<std::uint64_t>());
      CheckRoom(0, num_nodes, "nodes");
      CheckRoom(0, num_facts, "facts");
      for (std::size_t i = 0; i < num_nodes; ++i) ReadNode(&batch);
      for (std::size_t i = 0; i < num_facts; ++i) ReadFact(&batch);
      if (in_.left() > 0)
        throw TextError{in_.offset(), "expected the end, got " + std::to_string(in_.left()) + " more bytes"};
      batch.Commit();
    }
    const std::size_t num_relations = Snapshot(*graph).relations().size();
    if (!rules.rules.empty()) graph->SetRules(std::move(rules));
    if (Snapshot(*graph).relations().size() != num_relations)
      throw TextError{0, "a rule is about a relation that is not listed"};
    return graph;
  }

 private:
  // A number of items, which take a byte each at least.
  std::size_t Count(std::uint64_t count) const {
    if (count > in_.left())
      throw TextError{in_.offset(),
                      "expected " + std::to_string(count) + " items, got " + std::to_string(in_.left()) + " bytes"};
    return static_cast<std::size_t>(count);
  }
  std::string Utf8(std::string_view text) const {
    if (FindInvalidUtf8(text) != std::string_view::npos) throw TextError{in_.offset(), "expected UTF-8 before here"};
    return std::string(text);
  }
  bool Flag(const char* what) {
    const auto flag = in_.Number<std::uint8_t>();
    if (flag > 1)
      throw TextError{in_.offset() - 1, std::string(what) + ": expected 0 or 1, got " + std::to_string(flag)};
    return flag == 1;
  }

  std::vector<std::string> ReadWords() {
    std::vector<std::string> words(Count(in_.Number<std::uint32_t>()));
    if (words.size() > kMaxWords)
      throw TextError{in_.offset(), "expected at most " + std::to_string(kMaxWords) + " words"};
    Words known;
    for (std::string& word : words) {
      word = Utf8(in_.Text());
      if (word.empty()) continue;  // forgotten
      CheckName(word, "word");
      if (!known.ids.emplace(word, 0).second)
        throw TextError{in_.offset(), "expected each word once, got " + Quote(word) + " twice"};
    }
    return words;
  }

  ConflictRules ReadRules() {
    ConflictRules rules;
    rules.rules.resize(Count(in_.Number<std::uint32_t>()));
    for (ConflictRule& rule : rules.rules) {
      rule.name = Utf8(in_.Text());
      rule.members.resize(Count(in_.Number<std::uint32_t>()));
      for (ConflictRule::Member& member : rule.members) {
        member.relation = Utf8(in_.Text());
        member.role = Flag("role") ? ConflictRule::Role::kObject : ConflictRule::Role::kSubject;
        member.objects.resize(Count(in_.Number<std::uint32_t>()));
        for (std::string& object : member.objects) object = Utf8(in_.Text());
      }
    }
    CheckRules(rules);
    return rules;
  }

  void ReadNode(GraphBatch* batch) {
    if (!Flag("node")) return batch->SkipNode();
    const auto type = in_.Number<std::uint32_t>();
    const auto& types = batch->state().vocabulary->types->words;
    if (type != kNoType && (type >= types.size() || types[type].empty()))
      throw TextError{in_.offset() - 4, "expected a known type, got number " + std::to_string(type)};
    Node node;
    if (type != kNoType) node.type = types[type];
    node.embedding = in_.Number<std::int64_t>();
    if (node.embedding < kNoEmbedding) throw TextError{in_.offset() - 8, "expected an embedding >= -1"};
    node.name = Utf8(in_.Text());
    CheckName(node.name, "name");
    if (batch->FindNode(node.name) != kNoNode)
      throw TextError{in_.offset(), "expected each name once, got " + Quote(node.name) + " twice"};
    const std::size_t num_attributes = Count(in_.Number<std::uint32_t>());
    for (std::size_t i = 0; i < num_attributes; ++i) {
      std::string key = Utf8(in_.Text()), value = Utf8(in_.Text());
      if (!node.attributes.empty() && key <= node.attributes.back().first)
        throw TextError{in_.offset(), "expected attributes in the order of their keys, each once"};
      node.attributes.emplace_back(std::move(key), std::move(value));
    }
    batch->PutNode(node, kNoNode);
  }

  void ReadFact(GraphBatch* batch) {
    if (!Flag("fact")) return batch->SkipFact();
    const auto end = [&] {
      const auto node = in_.Number<std::uint32_t>();
      if (node >= batch->state().num_nodes || batch->node(node).name.empty())
        throw TextError{in_.offset() - 4, "expected a known node, got " + std::to_string(node)};
      return node;
    };
    const NodeId subject = end();
    const auto relation = in_.Number<std::uint32_t>();
    const auto& relations = batch->state().vocabulary->relations->words;
    if (relation >= relations.size() || relations[relation].empty())
      throw TextError{in_.offset() - 4, "expected a known relation, got number " + std::to_string(relation)};
    const NodeId object = end();
    const auto valid_at = in_.Number<std::int64_t>(), invalid_at = in_.Number<std::int64_t>();
    if (valid_at == kStillValid || invalid_at < valid_at)
      throw TextError{in_.offset() - 16, "expected valid_at <= invalid_at"};
    if (invalid_at == kStillValid && batch->FindFact(subject, relation, object) != kNoFact)
      throw TextError{in_.offset(), "expected each current fact once, got it twice"};
    const std::uint64_t num_sources = in_.Number<std::uint32_t>();
    if (num_sources > in_.left() / sizeof(std::int64_t)) throw TextError{in_.offset(), "expected fewer sources"};
    std::vector<std::int64_t> sources;
    for (std::uint64_t i = 0; i < num_sources; ++i) {
      sources.push_back(in_.Number<std::int64_t>());
      if (i > 0 && sources[i] == sources[i - 1]) throw TextError{in_.offset() - 8, "expected a source once in a row"};
    }
    const FactId fact = batch->AddFact(subject, relation, object, valid_at, invalid_at, std::nullopt);
    if (!sources.empty()) batch->SetSources(fact, sources);
  }

  ByteReader in_;
};

}  // namespace

std::string GraphToBytes(const Snapshot& snapshot, std::string_view label) {
  std::string out(kMagic);
  PutNumber(&out, kGraphBytesVersion);
  PutText(&out, label);
  PutWords(&out, snapshot.relations());
  PutWords(&out, snapshot.types());
  const auto& rules = snapshot.rules().rules;
  PutNumber(&out, static_cast<std::uint32_t>(rules.size()));
  for (const ConflictRule& rule : rules) {
    PutText(&out, rule.name);
    PutNumber(&out, static_cast<std::uint32_t>(rule.members.size()));
    for (const ConflictRule::Member& member : rule.members) {
      PutText(&out, member.relation);
      PutNumber(&out, static_cast<std::uint8_t>(member.role == ConflictRule::Role::kObject ? 1 : 0));
      PutWords(&out, member.objects);
    }
  }
  PutNumber(&out, static_cast<std::uint64_t>(snapshot.num_nodes()));
  PutNumber(&out, static_cast<std::uint64_t>(snapshot.num_facts()));
  const auto number = [](const std::vector<std::string>& words) {
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (std::size_t i = 0; i < words.size(); ++i) numbers.emplace(words[i], static_cast<std::uint32_t>(i));
    return numbers;
  };
  const auto types = number(snapshot.types()), relations = number(snapshot.relations());
  for (std::size_t i = 0; i < snapshot.num_nodes(); ++i) {
    const auto id = static_cast<NodeId>(i);
    PutNumber(&out, static_cast<std::uint8_t>(snapshot.HasNode(id) ? 1 : 0));
    if (!snapshot.HasNode(id)) continue;
    const Node node = snapshot.GetNode(id);
    PutNumber(&out, node.type.empty() ? kNoType : types.at(node.type));
    PutNumber(&out, node.embedding);
    PutText(&out, node.name);
    PutNumber(&out, static_cast<std::uint32_t>(node.attributes.size()));
    for (const auto& [key, value] : node.attributes) {
      PutText(&out, key);
      PutText(&out, value);
    }
  }
  for (std::size_t i = 0; i < snapshot.num_facts(); ++i) {
    const auto id = static_cast<FactId>(i);
    PutNumber(&out, static_cast<std::uint8_t>(snapshot.HasFact(id) ? 1 : 0));
    if (!snapshot.HasFact(id)) continue;
    const Fact fact = snapshot.GetFact(id);
    PutNumber(&out, fact.subject);
    PutNumber(&out, relations.at(fact.relation));
    PutNumber(&out, fact.object);
    PutNumber(&out, fact.valid_at);
    PutNumber(&out, fact.invalid_at);
    PutNumber(&out, static_cast<std::uint32_t>(fact.sources.size()));
    for (const std::int64_t source : fact.sources) PutNumber(&out, source);
  }
  PutNumber(&out, Crc32c(out));
  return out;
}

std::unique_ptr<KnowledgeGraph> GraphFromBytes(std::string_view bytes, std::string* label) {
  if (bytes.size() < kMagic.size() + 8 || bytes.substr(0, kMagic.size()) != kMagic)
    throw InvalidInputError("graph: expected bytes that begin with " + Quote(kMagic) + ", got " +
                            Quote(bytes.substr(0, kMagic.size())));
  const auto version = NumberAt<std::uint32_t>(bytes, kMagic.size());
  if (version != kGraphBytesVersion)
    throw InvalidInputError("graph: expected format version " + std::to_string(kGraphBytesVersion) + ", got " +
                            std::to_string(version) + "; read it with the release of embodied_mem that wrote it");
  const std::string_view body = bytes.substr(0, bytes.size() - 4);
  if (Crc32c(body) != NumberAt<std::uint32_t>(bytes, body.size()))
    throw InvalidInputError("graph: the checksum of " + std::to_string(bytes.size()) +
                            " bytes does not match; they are damaged or cut");
  try {
    return GraphReader(body).Read(label);
  } catch (const TextError& error) {
    throw InvalidInputError("graph: at offset " + std::to_string(error.offset) + ": " + error.reason);
  }
}

}  // namespace embodied_mem
