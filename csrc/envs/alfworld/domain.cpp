// Recognises ALFWorld's domain and grammar by the fingerprints of their parts.
//
// The engine implements one domain, which every release shares but for two things: releases before 0.4 have no
// `help`, and the official game files let a receptacle of SinkType clean where the package's own domain does not.
// The texts themselves belong to ALFWorld and are not repeated here.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "envs/alfworld/game.h"
#include "envs/alfworld/sexpr.h"

namespace embodied_mem::alfworld {
namespace {

// A part and the fingerprint of one of its known versions. Domain parts are fingerprinted in canonical form,
// grammar parts byte by byte, without the sentence of the task.
struct KnownPart {
  std::string_view name;
  std::uint64_t fingerprint;
};

constexpr KnownPart kDomainParts[] = {
    {"domain", 0x2B3A908086BD404CULL},
    {":requirements", 0x56D15FD8DE998369ULL},
    {":types", 0x7AF06ACD496FC245ULL},
    {":predicates", 0x65BCCC834D7A3724ULL},
    {":functions", 0x46EB91F65B5262EFULL},
    {"action look", 0x62E702292266F091ULL},
    {"action inventory", 0x50D3F47C6B932CC7ULL},
    {"action examinereceptacle", 0x298BB90B55BC0B02ULL},
    {"action examineobject", 0x581D558AB3BE8177ULL},
    {"action gotolocation", 0xD8A17CCD7ADEEFDBULL},
    {"action openobject", 0x2231DF19AF4358D5ULL},
    {"action closeobject", 0x0C179198E3108E08ULL},
    {"action pickupobject", 0x103F5BAED1B1DE36ULL},
    {"action putobject", 0x5DA1D9A7171062E4ULL},
    {"action cleanobject", 0x439D753FBA8D1FB1ULL},
    {"action cleanobject", 0x98EC95B20812D756ULL},
    {"action heatobject", 0x07159BBBAB1AA465ULL},
    {"action coolobject", 0xDEF7443560953713ULL},
    {"action toggleobject", 0xC30177666F34F041ULL},
    {"action sliceobject", 0xAD4E4474E2B37073ULL},
    {"action help", 0x1484B487C66E6CE2ULL},
};
constexpr KnownPart kGrammarParts[] = {
    {"grammar", 0x1C4052760553E72BULL},
    {"grammar", 0x5EAE8E62FE581686ULL},
    {"action GotoLocation", 0x6336F9E590F234F6ULL},
    {"action OpenObject", 0xF1980C398114B4B7ULL},
    {"action CloseObject", 0x0FFF14A00CB8F22BULL},
    {"action PickupObject", 0x45C9D9DD739F9007ULL},
    {"action PickupObjectFromReceptacleObject", 0xCD8D5A65C33045C7ULL},
    {"action PickupEmptyReceptacleObject", 0x8CA4645B20F88C37ULL},
    {"action PickupFullReceptacleObject", 0x01E69F4A5A2B31B9ULL},
    {"action PutObject", 0xAEFFC43222B40F24ULL},
    {"action PutObject", 0x85FE86AD354996F4ULL},
    {"action PutObjectInReceptacleObject", 0x4E936F340E73D66FULL},
    {"action PutEmptyReceptacleObjectinReceptacle", 0xB2E3432227401A2EULL},
    {"action PutEmptyReceptacleObjectinReceptacle", 0x5A4987C8F3BA08B2ULL},
    {"action PutFullReceptacleObjectInReceptacle", 0x89251F53BB8AEA4FULL},
    {"action inventory", 0xD0D497F205A88DD1ULL},
    {"action examineReceptacle", 0xB77BC8ACEE3F005CULL},
    {"action examineObject", 0x036BBD8A271EEC57ULL},
    {"action ToggleObject", 0x458404663941E633ULL},
    {"action HeatObject", 0xFC65BF1F254C13DDULL},
    {"action CleanObject", 0x4BD7FC8BD97E5BD2ULL},
    {"action CoolObject", 0x92B9D0F2F0CE7854ULL},
    {"action SliceObject", 0xB56AF1243F159CD5ULL},
    {"action look", 0xD2A05690988BBA46ULL},
    {"action help", 0xB5B8096A6582B879ULL},
    {"action help", 0x92C39E3B7AED215EULL},
};

// The three domains as they stand in the files, byte by byte: official games, package 0.4.2, packages 0.3.x.
constexpr std::array<std::uint64_t, 3> kWholeDomains = {0xBD38B1A31858F3B3ULL, 0x132E884F6E02C812ULL,
                                                        0x84B8C7BA23549C39ULL};
constexpr std::uint64_t kSinksClean = 0x439D753FBA8D1FB1ULL;

// Checks parts one after the other: each must be known, in a known version, at most once; Finish() wants them all.
template <std::size_t N>
class PartChecker {
 public:
  PartChecker(const KnownPart (&known)[N], const char* what) : known_(known), what_(what) {}

  void Check(const std::string& name, std::uint64_t fingerprint, std::size_t offset) {
    const auto same_name = [&](const KnownPart& part) { return part.name == name; };
    if (std::none_of(known_, known_ + N, same_name))
      throw TextError{offset, what_ + " has an unknown part " + Quote(name)};
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end())
      throw TextError{offset, what_ + " has the part " + Quote(name) + " twice"};
    if (std::none_of(known_, known_ + N,
                     [&](const KnownPart& part) { return same_name(part) && part.fingerprint == fingerprint; })) {
      char hex[17];
      std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(fingerprint));
      throw TextError{offset, "the part " + Quote(name) +
                                  " is not that of any known release of ALFWorld (fingerprint " + hex +
                                  "); this engine plays ALFWorld's own " + what_ + " only"};
    }
    seen_.push_back(name);
  }

  void Finish(std::size_t offset) const {
    for (const KnownPart& part : known_) {
      const bool optional = part.name == "action help";
      if (!optional && std::find(seen_.begin(), seen_.end(), part.name) == seen_.end())
        throw TextError{offset, what_ + " has no part " + Quote(part.name)};
    }
  }

 private:
  const KnownPart (&known_)[N];
  std::string what_;
  std::vector<std::string> seen_;
};

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

bool CheckDomain(std::string_view domain) {
  const std::uint64_t whole = Fingerprint(domain);
  if (whole == kWholeDomains[0]) return true;
  if (whole == kWholeDomains[1] || whole == kWholeDomains[2]) return false;
  const SExpr tree(domain);
  if (tree.Head(tree.Root()) != "define")
    throw TextError{tree.Offset(tree.Root()), "expected (define (domain alfred) ...)"};
  PartChecker checker(kDomainParts, "the domain");
  bool sinks_clean = false;
  for (std::uint32_t part = tree.Next(tree.FirstChild(tree.Root())); part != 0; part = tree.Next(part)) {
    std::string name(tree.Head(part));
    if (name == ":action") {
      const std::uint32_t action = tree.Next(tree.FirstChild(part));
      name = "action " + (action == 0 || tree.IsList(action) ? std::string() : std::string(tree.Token(action)));
    }
    const std::uint64_t fingerprint = Fingerprint(tree.Canonical(part));
    checker.Check(name, fingerprint, tree.Offset(part));
    sinks_clean = sinks_clean || fingerprint == kSinksClean;
  }
  checker.Finish(tree.Offset(tree.Root()));
  return sinks_clean;
}

void CheckTask(std::string_view task) {
  if (task.empty()) throw TextError{0, "the sentence of the task is empty"};
  const std::size_t invalid = FindInvalidUtf8(task);
  if (invalid != std::string_view::npos) throw TextError{invalid, "not valid UTF-8"};
  for (std::size_t i = 0; i < task.size(); ++i) {
    const auto c = static_cast<unsigned char>(task[i]);
    if (c < 0x20 || std::string_view(";|\"<>[]#{}\\").find(task[i]) != std::string_view::npos)
      throw TextError{
          i, "the sentence of the task has a character that the grammar cannot print: " + Quote(task.substr(i, 1))};
  }
  if (task.front() == ' ' || task.back() == ' ' || task.find("//") != std::string_view::npos)
    throw TextError{0, "the sentence of the task starts or ends with a blank, or has '//' in it"};
}

std::string CheckGrammar(std::string_view grammar) {
  constexpr std::string_view kMarker = "Your task is to: ";
  const std::size_t marker = grammar.find(kMarker);
  if (marker == std::string_view::npos)
    throw TextError{0, "expected the sentence of the task after \"Your task is to: \", found none"};
  const std::size_t start = marker + kMarker.size();
  const std::size_t end = grammar.find('"', start);
  if (end == std::string_view::npos) throw TextError{start, "the sentence of the task does not end"};
  std::string task(grammar.substr(start, end - start));
  try {
    CheckTask(task);
  } catch (const TextError& error) {
    throw TextError{start + error.offset, error.reason};
  }

  std::string rest(grammar.substr(0, start));
  rest += grammar.substr(end);
  PartChecker checker(kGrammarParts, "the grammar");
  constexpr std::string_view kAction = "\naction ";
  for (std::size_t at = 0; at < rest.size();) {
    const std::size_t next = std::min(rest.find(kAction, at + 1), rest.size());
    const std::string_view part = Trimmed(std::string_view(rest).substr(at, next - at));
    std::string name = "grammar";
    if (part.substr(0, kAction.size() - 1) == kAction.substr(1)) {
      const std::size_t name_end = part.find_first_of(" {\n", kAction.size() - 1);
      name = std::string(part.substr(0, name_end));
    }
    checker.Check(name, Fingerprint(part), at < start ? at : at + task.size());
    at = next;
  }
  checker.Finish(0);
  return task;
}

}  // namespace embodied_mem::alfworld
