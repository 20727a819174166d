// Files of the user's, read where they are: a config.json, and tensors before and after.

#include "explorer/wasm/call.h"
#include "posenc/diagnosis.h"
#include "posenc/error.h"
#include "posenc/gguf.h"
#include "posenc/model.h"
#include "posenc/npy.h"
#include "posenc/report_json.h"

namespace posenc::page {
namespace {

/// A config.json, or the beginning of a .gguf file.
Answer model(const Question& question) {
  const std::string_view text(reinterpret_cast<const char*>(question.bytes.data()), question.bytes.size());
  if (text.starts_with("GGUF")) return {json_of(read_model(read_gguf_head(question.bytes), question.bytes)), {}};
  return {json_of(read_model(text)), {}};
}

/// Two .npy files, one after the other; "first_bytes" says where the second begins.
Answer diagnosis(const Question& question) {
  const auto split = static_cast<std::size_t>(integer(question.fields, "first_bytes", 0));
  if (split > question.bytes.size()) raise("first_bytes is past the end");
  const NpyOptions options{.uint16_is_bf16 = true};
  const NpyArray before = read_npy(question.bytes.first(split), options);
  const NpyArray after = read_npy(question.bytes.subspan(split), options);
  return {json_of(diagnose(before.view(), after.view())), {}};
}

}  // namespace

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {{"model", model}, {"diagnose", diagnosis}};
  return kCalls;
}

}  // namespace posenc::page
