// The way in and out: JSON and bytes in, JSON and bytes out. An Error traps, and the page reads pe_error().

#include "explorer/wasm/call.h"

#include <cmath>
#include <cstdlib>

#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/scheme.h"

namespace posenc::page {
namespace {

Answer last_answer;
std::string last_text;

const Json* field(const Json& fields, std::string_view name) {
  const Json* const found = fields.find(name);
  return found == nullptr || found->as<std::nullptr_t>() != nullptr ? nullptr : found;
}

[[noreturn]] void wrong(std::string_view name, std::string_view rule) {
  raise(std::string(name) + " must be " + std::string(rule));
}

}  // namespace

double number(const Json& fields, std::string_view name, double otherwise) {
  const Json* const found = field(fields, name);
  if (found == nullptr) return otherwise;
  if (const auto* whole = found->as<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* real = found->as<double>()) return *real;
  wrong(name, "a number");
}

std::int64_t integer(const Json& fields, std::string_view name, std::int64_t otherwise) {
  const double value = number(fields, name, static_cast<double>(otherwise));
  if (value != std::floor(value) || std::fabs(value) > 0x1p53) wrong(name, "a whole number");
  return static_cast<std::int64_t>(value);
}

std::string text(const Json& fields, std::string_view name, std::string_view otherwise) {
  const Json* const found = field(fields, name);
  if (found == nullptr) return std::string(otherwise);
  if (const auto* words = found->as<std::string>()) return *words;
  wrong(name, "text");
}

bool flag(const Json& fields, std::string_view name) {
  const Json* const found = field(fields, name);
  if (found == nullptr) return false;
  if (const auto* value = found->as<bool>()) return *value;
  wrong(name, "true or false");
}

}  // namespace posenc::page

// What WebAssembly exports. Pointers are offsets into the module's memory; src/core.ts alone reads it.
#define POSENC_EXPORT(name) __attribute__((export_name(#name)))

using posenc::page::last_answer;
using posenc::page::last_text;

extern "C" {

extern int posenc_out_of_memory;  // runtime.cpp
POSENC_EXPORT(pe_alloc) void* pe_alloc(std::size_t bytes) { return std::malloc(bytes == 0 ? 1 : bytes); }
POSENC_EXPORT(pe_free) void pe_free(void* memory) { std::free(memory); }

/// `request` is JSON, {"call": NAME, …}; `bytes` are files of the user's. Traps where something is wrong.
POSENC_EXPORT(pe_call)
void pe_call(const char* request, std::size_t size, const std::byte* bytes, std::size_t count) {
  using namespace posenc;
  const page::Question question{parse_json({request, size}, {.large_integers = true}), {bytes, count}};
  const std::string name = page::text(question.fields, "call");
  for (const page::NamedCall& known : page::calls()) {
    if (known.name != name) continue;
    last_answer = known.call(question);
    last_text = dump_json(last_answer.json);
    return;
  }
  raise("no call '" + name + "'");
}
POSENC_EXPORT(pe_text) const char* pe_text() { return last_text.data(); }
POSENC_EXPORT(pe_text_size) std::size_t pe_text_size() { return last_text.size(); }
POSENC_EXPORT(pe_bytes) const std::byte* pe_bytes() { return last_answer.bytes.data(); }
POSENC_EXPORT(pe_bytes_size) std::size_t pe_bytes_size() { return last_answer.bytes.size(); }
POSENC_EXPORT(pe_error) const char* pe_error() { return posenc::last_error().data(); }
POSENC_EXPORT(pe_error_size) std::size_t pe_error_size() { return posenc::last_error().size(); }
/// Whether the trap was for want of memory, which has no message: making one would take some.
POSENC_EXPORT(pe_out_of_memory) int pe_out_of_memory() { return posenc_out_of_memory; }
}
