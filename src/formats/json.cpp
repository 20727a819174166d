#include "posenc/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/json_builder.h"
#include "posenc/error.h"

// In a separate namespace, so that a program that links this library and uses another RapidJSON sees no clash.
#define RAPIDJSON_NAMESPACE posenc_rapidjson
// The library never aborts, not even if RapidJSON detects an error of its own.
#define RAPIDJSON_ASSERT(condition) \
  static_cast<void>((condition) || (::posenc::raise("json: internal check failed: " #condition), false))
// Its stack starts as a null pointer and adds to it before allocating, which clang's sanitizer reports as undefined.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace posenc {
namespace {

namespace rj = posenc_rapidjson;

// RapidJSON counts the digits of a number and its exponent in an int; texts stay well below its limit.
constexpr std::int64_t kLongest = 200'000'000;

// Numbers are passed as text and converted by the builder: RapidJSON 1.1.0 reads 1.8e308 as NaN, turns integers past
// 64 bits into doubles, and with kParseFullPrecisionFlag crashes on 128.74836467836484838364836483643636483648e-336.
constexpr unsigned kFlags = rj::kParseIterativeFlag | rj::kParseValidateEncodingFlag |
                            rj::kParseNumbersAsStringsFlag | rj::kParseNanAndInfFlag;

// RapidJSON's own allocator returns the null pointer of a failed realloc, and its reader writes through it.
struct ThrowingAllocator {
  void* Malloc(std::size_t size) { return size == 0 ? nullptr : ::operator new(size); }
  void* Realloc(void* old, std::size_t old_size, std::size_t size) {
    void* const fresh = Malloc(size);
    if (fresh != nullptr && old != nullptr) std::copy_n(bytes(old), std::min(old_size, size), bytes(fresh));
    Free(old);
    return fresh;
  }
  static void Free(void* memory) { ::operator delete(memory); }
  static char* bytes(void* memory) { return static_cast<char*>(memory); }
};

/// Passes RapidJSON's events to the builder. The names are RapidJSON's.
struct Events {
  JsonBuilder& builder;
  const rj::MemoryStream& stream;

  bool Null() { return builder.add(nullptr, stream.Tell()); }
  bool Bool(bool value) { return builder.add(value, stream.Tell()); }
  bool RawNumber(const char* text, rj::SizeType length, bool) {
    return builder.add_number({text, length}, stream.Tell() - length);
  }
  bool String(const char* text, rj::SizeType length, bool) {
    return builder.add_string({text, length}, stream.Tell());
  }
  bool Key(const char* text, rj::SizeType length, bool) { return builder.key({text, length}, stream.Tell()); }
  bool StartArray() { return builder.open_array(stream.Tell()); }
  bool EndArray(rj::SizeType) { return builder.close_array(); }
  bool StartObject() { return builder.open_object(stream.Tell()); }
  bool EndObject(rj::SizeType) { return builder.close_object(); }
  // Never called, because numbers are passed as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
};

/// "expected EXPECTED, got 'x'", with a hint for common mistakes.
std::string expected(std::string_view what, std::string_view text, std::size_t offset) {
  if (offset >= text.size()) return fmt::format("expected {}, but the text ends", what);
  const std::string_view rest = text.substr(offset);
  const auto c = static_cast<unsigned char>(rest.front());
  const bool printable = c >= 0x20 && c < 0x7F;
  const std::string found = printable ? fmt::format("'{}'", rest.front()) : fmt::format("byte 0x{:02x}", c);
  const bool comment = rest.starts_with("//") || rest.starts_with("/*") || rest.front() == '#';
  return fmt::format("expected {}, got {}{}", what, found, comment ? " (JSON has no comments)" : "");
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/// For an invalid value: RapidJSON stops within a misspelled word, so this finds and reports the whole word.
JsonComplaint no_value(std::string_view text, std::size_t offset) {
  std::size_t begin = offset;
  std::size_t end = offset;
  while (begin > 0 && offset - begin < 16 && is_word(text[begin - 1])) --begin;
  while (end < text.size() && end - begin < 32 && is_word(text[end])) ++end;
  if (begin == end) return {offset, expected("a value", text, offset)};
  return {begin, fmt::format("{} is not a value", text.substr(begin, end - begin))};
}

JsonComplaint complaint_of(rj::ParseErrorCode code, std::string_view text, std::size_t offset) {
  switch (code) {
    case rj::kParseErrorDocumentEmpty:
    case rj::kParseErrorValueInvalid:
      return no_value(text, offset);
    case rj::kParseErrorDocumentRootNotSingular:
      return {offset, expected("the end of the text", text, offset)};
    case rj::kParseErrorObjectMissName:
      return {offset, expected("a key in double quotes", text, offset)};
    case rj::kParseErrorObjectMissColon:
      return {offset, expected("':'", text, offset)};
    case rj::kParseErrorObjectMissCommaOrCurlyBracket:
      return {offset, expected("',' or '}'", text, offset)};
    case rj::kParseErrorArrayMissCommaOrSquareBracket:
      return {offset, expected("',' or ']'", text, offset)};
    case rj::kParseErrorStringUnicodeEscapeInvalidHex:
      return {offset, "\\u needs four hexadecimal digits"};
    case rj::kParseErrorStringUnicodeSurrogateInvalid:
      return {offset, "half of a surrogate pair"};
    case rj::kParseErrorStringEscapeInvalid:
      if (offset < text.size() && text[offset] == '\\') return {offset, "unknown escape"};
      return {offset, fmt::format("control character 0x{:02x} in a string must be escaped", text[offset])};
    case rj::kParseErrorStringMissQuotationMark:
      return {offset, "the string has no closing quote"};
    case rj::kParseErrorStringInvalidEncoding:
      return {offset, "invalid UTF-8"};
    case rj::kParseErrorNumberTooBig:
      return {offset, "the number is too large"};
    case rj::kParseErrorNumberMissFraction:
      return {offset, expected("a digit after '.'", text, offset)};
    case rj::kParseErrorNumberMissExponent:
      return {offset, expected("a digit of the exponent", text, offset)};
    default:
      return {offset, "malformed JSON"};
  }
}

/// Finds, before RapidJSON copies it, where a string that is too long begins. Malformed text is left to the reader.
std::optional<std::size_t> find_long_string(std::string_view text, std::int64_t longest) {
  if (static_cast<std::int64_t>(text.size()) <= longest) return std::nullopt;
  for (std::size_t begin = text.find('"'); begin != std::string_view::npos;) {
    std::size_t end = text.find_first_of("\"\\", begin + 1);
    while (end < text.size() && text[end] == '\\') end = text.find_first_of("\"\\", std::min(end + 2, text.size()));
    end = std::min(end, text.size());
    if (static_cast<std::int64_t>(end - begin - 1) > longest) return begin;
    begin = text.find('"', end + 1);
  }
  return std::nullopt;
}

/// What RapidJSON would overlook or report badly.
std::optional<JsonComplaint> complaint_about(std::string_view text, const JsonLimits& limits) {
  const std::int64_t longest = std::min(limits.bytes, kLongest);
  if (static_cast<std::int64_t>(text.size()) > longest) {
    return {{0, fmt::format("the text is {} bytes long, the limit is {}", text.size(), longest)}};
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    return {{0, "the text begins with a byte order mark (save it as UTF-8 without one)"}};
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return {{0, "the text is UTF-16 (save it as UTF-8)"}};
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return {{text.size(), "the text is empty"}};
  // RapidJSON treats a zero byte as the end, and would ignore what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return {{zero, "zero byte (JSON is UTF-8 text)"}};
  }
  if (const auto begin = find_long_string(text, limits.text)) {
    return {{*begin, fmt::format("a string is longer than {} bytes", limits.text)}};
  }
  return std::nullopt;
}

/// Passes everything in the text to the builder, and returns the first error.
std::optional<JsonComplaint> read(std::string_view text, const JsonLimits& limits, JsonBuilder& builder) {
  if (auto complaint = complaint_about(text, limits)) return complaint;
  rj::MemoryStream stream(text.data(), text.size());
  Events events{builder, stream};
  rj::GenericReader<rj::UTF8<>, rj::UTF8<>, ThrowingAllocator> reader;
  const rj::ParseResult result = reader.Parse<kFlags>(stream, events);
  if (builder.complaint()) return builder.complaint();
  if (result.IsError()) return complaint_of(result.Code(), text, result.Offset());
  return std::nullopt;
}

}  // namespace

const Json* Json::find(std::string_view key) const {
  const Object* const object = as<Object>();
  if (object == nullptr) return nullptr;
  for (const auto& [name, value] : *object) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json parse_json(std::string_view text, const JsonLimits& limits) {
  JsonBuilder builder(text, limits);
  if (const auto complaint = read(text, limits, builder)) {
    const JsonPlace place = place_of(text, complaint->offset);
    raise(fmt::format("line {}, column {}: {}", place.line, place.column, complaint->what));
  }
  return builder.take();
}

void read_json_members(std::string_view text, std::uint64_t first_byte, const JsonLimits& limits,
                       JsonMemberVisit visit) {
  JsonBuilder builder(text, limits, std::move(visit));
  if (const auto complaint = read(text, limits, builder)) raise_at(first_byte + complaint->offset, complaint->what);
}

}  // namespace posenc
