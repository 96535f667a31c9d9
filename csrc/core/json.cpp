#include "core/json.h"

#include <cstdint>

namespace embodied_mem {
namespace {

class Parser {
 public:
  Parser(std::string_view text, std::size_t max_members) : text_(text), max_members_(max_members) {}

  JsonValue Document() {
    const std::size_t invalid = FindInvalidUtf8(text_);
    if (invalid != std::string_view::npos) throw TextError{invalid, "not valid UTF-8"};
    SkipSpace();
    JsonValue value = Value(0);
    SkipSpace();
    if (at_ != text_.size()) Fail("expected the end of the JSON text, got " + Quote(text_.substr(at_, 1)));
    return value;
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const { throw TextError{at_, reason}; }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }

  bool Take(char c) {
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }

  void Word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) Fail("not JSON: expected " + std::string(word));
    at_ += word.size();
  }

  JsonValue Value(int depth) {
    if (depth > kMaxJsonDepth) Fail("nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    if (at_ >= text_.size()) Fail("the text ends where a JSON value was expected; is the file truncated?");
    if (++num_values_ > kMaxJsonValues) Fail("more than " + std::to_string(kMaxJsonValues) + " values");
    JsonValue value;
    value.offset = at_;
    switch (text_[at_]) {
      case '{':
        value.kind = JsonValue::Kind::kObject;
        Object(depth, &value);
        break;
      case '[':
        value.kind = JsonValue::Kind::kArray;
        Array(depth, &value);
        break;
      case '"':
        value.kind = JsonValue::Kind::kString;
        value.text = String();
        break;
      case 't':
        value.kind = JsonValue::Kind::kTrue;
        Word("true");
        break;
      case 'f':
        value.kind = JsonValue::Kind::kFalse;
        Word("false");
        break;
      case 'n':
        value.kind = JsonValue::Kind::kNull;
        Word("null");
        break;
      default:
        value.kind = JsonValue::Kind::kNumber;
        value.text = Number();
        break;
    }
    return value;
  }

  void Object(int depth, JsonValue* value) {
    ++at_;
    SkipSpace();
    if (Take('}')) return;
    while (true) {
      SkipSpace();
      if (at_ >= text_.size() || text_[at_] != '"') Fail("expected the name of a member in quotation marks");
      const std::size_t name_at = at_;
      std::string name = String();
      if (value->Find(name) != nullptr) throw TextError{name_at, "the member " + Quote(name) + " comes twice"};
      if (value->members.size() >= max_members_) Fail("more than " + std::to_string(max_members_) + " members");
      SkipSpace();
      if (!Take(':')) Fail("expected ':' after the name of a member");
      SkipSpace();
      value->members.emplace_back(std::move(name), Value(depth + 1));
      SkipSpace();
      if (Take('}')) return;
      if (!Take(',')) Fail("expected ',' or '}' after a member; is the file truncated?");
    }
  }

  void Array(int depth, JsonValue* value) {
    ++at_;
    SkipSpace();
    if (Take(']')) return;
    while (true) {
      SkipSpace();
      value->items.push_back(Value(depth + 1));
      SkipSpace();
      if (Take(']')) return;
      if (!Take(',')) Fail("expected ',' or ']' after an item; is the file truncated?");
    }
  }

  std::string Number() {
    const std::size_t start = at_;
    const auto digits = [this] {
      const std::size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      return at_ - first;
    };
    Take('-');
    const std::size_t integer_at = at_;
    if (digits() == 0) {
      at_ = start;
      Fail("not JSON: expected a value, got " + Quote(text_.substr(at_, 1)));
    }
    if (text_[integer_at] == '0' && at_ - integer_at > 1) Fail("a number has a leading zero");
    if (Take('.') && digits() == 0) Fail("a number ends after its point");
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (digits() == 0) Fail("a number ends in its exponent");
    }
    return std::string(text_.substr(start, at_ - start));
  }

  std::uint32_t Hex4() {
    if (at_ + 4 > text_.size()) Fail("a \\u escape is cut short");
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = text_[at_];
      code <<= 4;
      if (c >= '0' && c <= '9') code |= static_cast<std::uint32_t>(c - '0');
      else if (c >= 'a' && c <= 'f') code |= static_cast<std::uint32_t>(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F') code |= static_cast<std::uint32_t>(c - 'A' + 10);
      else Fail("a \\u escape needs four hexadecimal digits");
    }
    return code;
  }

  void Escape(std::string* out) {
    if (at_ >= text_.size()) Fail("the text ends inside a string; is the file truncated?");
    const char c = text_[at_++];
    switch (c) {
      case '"':
      case '\\':
      case '/': *out += c; return;
      case 'b': *out += '\b'; return;
      case 'f': *out += '\f'; return;
      case 'n': *out += '\n'; return;
      case 'r': *out += '\r'; return;
      case 't': *out += '\t'; return;
      case 'u': break;
      default: --at_; Fail("unknown escape in a string: \\" + std::string(1, c >= 0x20 && c < 0x7F ? c : '?'));
    }
    std::uint32_t code = Hex4();
    if (code >= 0xDC00 && code <= 0xDFFF) Fail("a \\u escape is half of a surrogate pair");
    if (code >= 0xD800 && code <= 0xDBFF) {
      if (!Take('\\') || !Take('u')) Fail("a \\u escape is half of a surrogate pair");
      const std::uint32_t low = Hex4();
      if (low < 0xDC00 || low > 0xDFFF) Fail("a \\u escape is half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    const auto put = [out](std::uint32_t byte) { *out += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | (code >> 6)), put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      put(0xE0 | (code >> 12)), put(0x80 | ((code >> 6) & 0x3F)), put(0x80 | (code & 0x3F));
    } else {
      put(0xF0 | (code >> 18)), put(0x80 | ((code >> 12) & 0x3F)), put(0x80 | ((code >> 6) & 0x3F));
      put(0x80 | (code & 0x3F));
    }
  }

  std::string String() {
    ++at_;
    std::string out;
    while (true) {
      const std::size_t start = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20)
        ++at_;
      out.append(text_, start, at_ - start);
      if (at_ >= text_.size()) Fail("the text ends inside a string; is the file truncated?");
      if (Take('"')) return out;
      if (!Take('\\')) Fail("a control character inside a string");
      Escape(&out);
    }
  }

  std::string_view text_;
  std::size_t max_members_;
  std::size_t at_ = 0;
  std::size_t num_values_ = 0;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view name) const {
  for (const auto& member : members) {
    if (member.first == name) return &member.second;
  }
  return nullptr;
}

const char* JsonKindName(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::kNull: return "null";
    case JsonValue::Kind::kFalse: return "false";
    case JsonValue::Kind::kTrue: return "true";
    case JsonValue::Kind::kNumber: return "a number";
    case JsonValue::Kind::kString: return "a string";
    case JsonValue::Kind::kArray: return "an array";
    case JsonValue::Kind::kObject: return "an object";
  }
  return "an unknown value";
}

JsonValue ParseJson(std::string_view text) { return ParseJson(text, kMaxJsonMembers); }

JsonValue ParseJson(std::string_view text, std::size_t max_members) { return Parser(text, max_members).Document(); }

}  // namespace embodied_mem
