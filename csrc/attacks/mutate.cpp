// Gives mutated input to the native readers, in one process; to be built with EMBODIED_MEM_SANITIZE.
//
//   mutate READER SEEDS FIRST COUNT SEED [STATE]      readers: see kReaders; SEEDS: the folder experiments/attacks/seeds
//
// Input i of a seed is always the same. STATE is a file that holds the number of the present input, so that whoever
// started the program knows which one it died of; `mutate READER SEEDS i 1 SEED` gives that one again. Prints
// "read N refused M"; what is read must be fit for use: it is played, searched or written again.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/json.h"
#include "envs/alfworld/env.h"
#include "envs/alfworld/sexpr.h"
#include "envs/eb_alfred/env.h"
#include "envs/eb_habitat/env.h"
#include "envs/memento/env.h"
#include "memory/graph/graph_bytes.h"
#include "memory/graph/graph_update.h"
#include "memory/vectors/vector_index.h"

namespace embodied_mem {
namespace {

using Random = std::mt19937_64;

std::string folder;  // of the seeds

std::string Seed(const std::string& name) {
  std::ifstream file(folder + "/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("expected the seed " + folder + "/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

// Words that mean something to a reader, and numbers at the ends of ranges.
const std::vector<std::string> kTextTokens = {
    "{",      "}",    "[",        "]",    "\"",    ",",      ":",           "(",
    ")",      "?",    ";",        "-",    "null",  "true",   "\\ud800",     "\\u0000",
    "\\",     "\xff", "\xc0\x80", "-1",   "1e999", "-1e9",   "4294967296",  "18446744073709551616",
    "NaN",    "and",  "exists",   "(and", "?o",    "agent1", "object",      "AND",
    "EXISTS", "[[",   "[]",       "{}",   "\"\"",  "\n",     "\xe3\x80\x80"};
const std::vector<std::string> kByteTokens = {std::string(4, '\0'),
                                              std::string(8, '\0'),
                                              std::string(4, '\xff'),
                                              std::string(8, '\xff'),
                                              std::string("\x7f\xff\xff\xff", 4),
                                              std::string("\0\0\0\x80", 4),
                                              std::string("\x01\0\0\0", 4),
                                              std::string("\0\0\0\0\0\0\0\x80", 8),
                                              std::string("\0\0\xc0\x7f", 4),
                                              std::string("\0\0\x80\x7f", 4)};

// One to four edits: flips, other bytes, deletions, copies from elsewhere, tokens, cuts.
void Mutate(std::string* text, const std::vector<std::string>& tokens, Random* random, std::size_t keep = 0) {
  const auto at = [&] { return keep + (*random)() % (text->size() - keep); };
  for (std::uint64_t edits = 1 + (*random)() % 4; edits > 0; --edits) {
    if (text->size() <= keep) text->append(1, ' ');
    const std::size_t place = at();
    switch ((*random)() % 8) {
      case 0: (*text)[place] = static_cast<char>((*text)[place] ^ (1 << ((*random)() % 8))); break;
      case 1: (*text)[place] = static_cast<char>((*random)()); break;
      case 2: text->erase(place, 1 + (*random)() % 40); break;
      case 3: text->insert(place, text->substr(at(), 1 + (*random)() % 60)); break;
      case 4: text->replace(place, 1 + (*random)() % 9, text->substr(at(), 1 + (*random)() % 9)); break;
      case 5: text->insert(place, tokens[(*random)() % tokens.size()]); break;
      case 6: {
        const std::string& token = tokens[(*random)() % tokens.size()];
        text->replace(place, token.size(), token);
        break;
      }
      default:
        if ((*random)() % 6 == 0) text->resize(place);
    }
  }
}

// The word or quoted text around a place, as (offset, length); blanks and punctuation end it.
std::pair<std::size_t, std::size_t> WordAt(const std::string& text, std::size_t at) {
  const auto ends = [](char c) { return std::strchr(" \n,:[]{}()", c) != nullptr; };
  std::size_t begin = at, end = at;
  while (begin > 0 && !ends(text[begin - 1])) --begin;
  while (end < text.size() && !ends(text[end])) ++end;
  return {begin, end - begin};
}

// Half of them keep the punctuation, so that what is behind the syntax is asked: words change places or become others.
std::string MutatedText(const std::string& text, Random* random) {
  const std::vector<std::string> words = {"null",
                                          "true",
                                          "-1",
                                          "0",
                                          "1e999",
                                          "3.5",
                                          "\"\"",
                                          "[]",
                                          "{}",
                                          "65536",
                                          "\"a_cup\"",
                                          "4294967296",
                                          "18446744073709551615",
                                          "\"\\u0000\"",
                                          "object"};
  std::string mutated = text;
  if ((*random)() % 2 == 0) {
    Mutate(&mutated, kTextTokens, random);
    return mutated;
  }
  for (std::uint64_t edits = 1 + (*random)() % 3; edits > 0; --edits) {
    const auto [at, size] = WordAt(mutated, (*random)() % mutated.size());
    const auto [from, length] = WordAt(text, (*random)() % text.size());
    if (size == 0 || length == 0) continue;
    mutated.replace(at, size, (*random)() % 3 == 0 ? words[(*random)() % words.size()] : text.substr(from, length));
  }
  return mutated;
}

// Two files of which one is mutated.
std::array<std::string, 2> MutatedPair(const std::array<std::string, 2>& files, Random* random) {
  std::array<std::string, 2> mutated = files;
  std::string& text = mutated[(*random)() % 2];
  text = MutatedText(text, random);
  return mutated;
}

void PlayGame(const std::shared_ptr<const alfworld::Game>& game, Random* random) {
  alfworld::Env env;
  env.Reset(game, alfworld::Wording::k04);
  for (int step = 0; step < 8; ++step) {
    std::vector<alfworld::Command> commands;
    env.FillExtra(&commands);
    env.Step(alfworld::CommandText(*game, alfworld::Wording::k04, commands[(*random)() % commands.size()]));
    Require(env.observation() != "Nothing happens.", "an admissible command is refused");
  }
}

// A reader of one input: throws a caller's error if it refuses it, anything else is a fault.
using Reader = std::function<void(Random*)>;

Reader Json() {
  const std::vector<std::string> seeds = {Seed("memento_scenes.json"), Seed("eb_alfred_trial.json"),
                                          "[1, -2.5e3, \"\\u00e9\", {}]"};
  return [seeds](Random* random) { ParseJson(MutatedText(seeds[(*random)() % seeds.size()], random)); };
}

Reader SExpression() {
  return [seed = Seed("kitchen.pddl")](Random* random) {
    const alfworld::SExpr tree(MutatedText(seed, random));
    Require(alfworld::SExpr(tree.Canonical(tree.Root())).Canonical(1) == tree.Canonical(1),
            "the canonical text reads otherwise");
  };
}

Reader Problem() {
  return [seed = Seed("kitchen.pddl")](Random* random) {
    PlayGame(alfworld::Game::FromProblem(MutatedText(seed, random), "a task.", "mutated"), random);
  };
}

Reader GameFile() {
  return [seed = Seed("game.tw-pddl")](Random* random) {
    PlayGame(alfworld::Game::FromText(MutatedText(seed, random), "mutated"), random);
  };
}

Reader EbAlfred() {
  const std::array<std::string, 2> files = {Seed("eb_alfred_floorplans.json"), Seed("eb_alfred_trial.json")};
  return [files](Random* random) {
    const auto texts = MutatedPair(files, random);
    const auto task =
        eb_alfred::ReadTask(texts[1], "trial", eb_alfred::ReadCatalog(texts[0], "floorplans"), "kitchen", "t", "");
    eb_alfred::Env env;
    env.Reset(task, {});
    for (int step = 0; step < 20 && !task->actions.empty(); ++step)
      env.Step(task->actions[(*random)() % task->actions.size()].text);
    Require(env.progress() >= 0 && env.progress() <= 1, "progress is out of range");
  };
}

Reader EbHabitat() {
  const std::array<std::string, 2> files = {Seed("eb_habitat_scenes.json"), Seed("eb_habitat_episodes.json")};
  return [files](Random* random) {
    const auto texts = MutatedPair(files, random);
    for (const auto& task : eb_habitat::ReadTasks(texts[1], "episodes", eb_habitat::ReadScenes(texts[0], "scenes"))) {
      eb_habitat::Env env;
      env.Reset(task, {}, (*random)());
      for (int step = 0; step < 10; ++step) env.Step(std::to_string((*random)() % eb_habitat::kNumActions));
      Require(env.progress() >= 0 && env.progress() <= 1, "progress is out of range");
    }
  };
}

Reader Memento() {
  const std::array<std::string, 2> files = {Seed("memento_scenes.json"), Seed("memento_episodes.json")};
  const std::vector<std::string> actions = {
      "Explore[kitchen_1]", "Navigate[cup_0]",     "Pick[cup_0]",
      "Navigate[bed_4]",    "Open[cabinet_5]",     "Place[cup_0, on, bed_4, None, None]",
      "Fill[cup_0]",        "FindObjectTool[cup]", "Wait[]"};
  return [files, actions](Random* random) {
    const memento::Labels labels = {{"Cup", {"cup", "A cup.", true}}, {"Book", {"book", "", false}}};
    const auto texts = MutatedPair(files, random);
    for (const auto& task :
         memento::ReadTasks(texts[1], "episodes", memento::ReadHouses(texts[0], "scenes"), labels, {})) {
      memento::Env env;
      env.Reset(task, {}, (*random)());
      for (int step = 0; step < 12; ++step) env.Step(actions[(*random)() % actions.size()]);
      Require(env.progress() >= 0 && env.progress() <= 1, "progress is out of range");
    }
  };
}

void Tell(KnowledgeGraph* graph, Random* random) {
  KHopScratch scratch;
  UpdateResult result;
  const std::string thing = "thing " + std::to_string((*random)() % 9),
                    place = "place " + std::to_string((*random)() % 4);
  graph->Update({{{thing, "thing"}, "in", {place, ""}, static_cast<std::int64_t>((*random)() % 40), 1}}, {false, {}},
                &scratch, &result);
}

Reader GraphBytes() {
  KnowledgeGraph graph;
  graph.SetRules({{{"place", {{"in", ConflictRule::Role::kSubject, {}}, {"holds", ConflictRule::Role::kObject, {}}}}}});
  Random fixed(5);
  for (int i = 0; i < 30; ++i) Tell(&graph, &fixed);
  graph.Forget({1}, {});
  const std::string whole = GraphToBytes(Snapshot(graph), "x");
  return [whole](Random* random) {
    // Half of them with a checksum that holds, so that the reader behind it is asked.
    std::string bytes = whole;
    if ((*random)() % 2 == 0) {
      Mutate(&bytes, kByteTokens, random);
    } else {
      bytes.resize(bytes.size() - 4);
      Mutate(&bytes, kByteTokens, random, 12);
      PutNumber(&bytes, Crc32c(bytes));
    }
    std::string label;
    const auto copy = GraphFromBytes(bytes, &label);
    Require(GraphToBytes(Snapshot(*copy), label) == bytes, "the graph writes other bytes than it was read from");
    Tell(copy.get(), random);
  };
}

// A vector file whose sections have checksums that hold, as far as its sections can be found.
void FixVectorFile(std::string* bytes) {
  const auto fix = [&](std::size_t begin, std::size_t size) {
    if (begin > bytes->size() || size > bytes->size() - begin || bytes->size() - begin - size < 4) return begin;
    const std::uint32_t crc = Crc32c(std::string_view(*bytes).substr(begin, size));
    std::memcpy(&(*bytes)[begin + size], &crc, 4);
    return begin + size + 4;
  };
  if (bytes->size() < 68) return;
  const auto kind = NumberAt<std::uint32_t>(*bytes, 12), dim = NumberAt<std::uint32_t>(*bytes, 20);
  const auto count = NumberAt<std::uint64_t>(*bytes, 40), words = NumberAt<std::uint64_t>(*bytes, 56);
  std::size_t at = fix(0, 64);
  if (count > 1000 || dim > 1000 || words > 100000) return;
  at = fix(at, 8 * count);
  at = fix(at, 4 * count * dim);
  if (kind == 2) fix(fix(at, count), 4 * words);
}

Reader Vectors() {
  const char* disk = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  const std::string path = std::string(disk) + "/mutate-" + std::to_string(getpid()) + ".idx";
  std::vector<std::string> seeds;
  for (const IndexKind kind : {IndexKind::kExact, IndexKind::kHnsw}) {
    VectorIndexOptions options;
    options.dim = 4;
    options.kind = kind;
    options.connectivity = 4;
    VectorIndex index(options);
    Random fixed(3);
    std::vector<VectorId> ids;
    std::vector<float> rows;
    for (int i = 0; i < 40; ++i) {
      ids.push_back(3 * i);
      for (int d = 0; d < 4; ++d) rows.push_back(static_cast<float>(fixed() % 1000) - 499.5F);
    }
    index.Add(ids.data(), rows.data(), ids.size(), 1);
    index.Save(path, 1);
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return [path, seeds](Random* random) {
    std::string bytes = seeds[(*random)() % seeds.size()];
    Mutate(&bytes, kByteTokens, random);
    if ((*random)() % 4 != 0) FixVectorFile(&bytes);
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const struct Remove {
      const std::string& path;
      ~Remove() { unlink(path.c_str()); }
    } remove{path};
    const auto index = VectorIndex::Load(path);
    const std::vector<float> query(index->options().dim, 0.5F);
    SearchOptions options;
    options.k = 3;
    std::vector<Neighbour> found(3);
    index->Search(query.data(), 1, options, found.data());
    const std::vector<VectorId> ids = index->Ids();
    Require(ids.size() == index->size(), "ids and size differ");
    for (const Neighbour& neighbour : found)
      Require(neighbour.id == kNoVector || index->Contains(neighbour.id), "found what is not there");
    if (!ids.empty()) index->Remove(ids.data(), 1, 1);
  };
}

const std::map<std::string, std::function<Reader()>> kReaders = {
    {"json", Json},       {"sexpr", SExpression},  {"problem", Problem},
    {"game", GameFile},   {"eb_alfred", EbAlfred}, {"eb_habitat", EbHabitat},
    {"memento", Memento}, {"graph", GraphBytes},   {"vectors", Vectors}};

int Main(int argc, char** argv) {
  if (argc < 6 || kReaders.count(argv[1]) == 0) {
    std::cerr << "usage: mutate READER SEEDS FIRST COUNT SEED [STATE]; readers:";
    for (const auto& entry : kReaders) std::cerr << " " << entry.first;
    std::cerr << "\n";
    return 2;
  }
  folder = argv[2];
  const std::uint64_t first = std::stoull(argv[3]), count = std::stoull(argv[4]), seed = std::stoull(argv[5]);
  volatile std::uint64_t none = 0;
  volatile std::uint64_t* now = &none;
  if (argc > 6) {
    const int file = open(argv[6], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 8) != 0) throw std::runtime_error("cannot write the file of the state");
    now = static_cast<volatile std::uint64_t*>(mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  }
  const Reader read = kReaders.at(argv[1])();
  std::uint64_t num_read = 0, num_refused = 0;
  for (std::uint64_t i = first; i < first + count; ++i) {
    *now = i;
    Random random(seed * 0x9E3779B97F4A7C15ULL + i);
    try {
      read(&random);
      ++num_read;
    } catch (const InvalidInputError&) {
      ++num_refused;
    } catch (const StorageError&) {
      ++num_refused;
    } catch (const TextError&) {
      ++num_refused;
    } catch (const std::exception& error) {
      std::cerr << argv[1] << ", input " << i << " of seed " << seed << ": " << error.what() << std::endl;
      return 1;
    }
  }
  std::cout << "read " << num_read << " refused " << num_refused << std::endl;
  return 0;
}

}  // namespace
}  // namespace embodied_mem

int main(int argc, char** argv) { return embodied_mem::Main(argc, argv); }
