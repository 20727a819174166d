// Files of the user's, read where they are: a config.json, and tensors before and after.

#include <algorithm>

#include "explorer/wasm/call.h"
#include "posenc/diagnosis.h"
#include "posenc/error.h"
#include "posenc/gguf.h"
#include "posenc/model.h"
#include "posenc/npy.h"
#include "posenc/properties.h"
#include "posenc/report_json.h"

namespace posenc::page {

Answer list_schemes(const Question&) { return {schemes_json(), {}}; }

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

/// The properties of a scheme, measured: all, or those in {"properties": ["unique", …]}. A width that is given is kept, as
/// `posenc prove` keeps it.
Answer prove_scheme(const Question& question) {
  const Json* const found = question.fields.find("scheme");
  if (found == nullptr) raise("scheme is missing");
  const Scheme scheme = found->find("width") == nullptr ? for_proving(scheme_from(*found)) : scheme_from(*found);
  const Json* const names = question.fields.find("properties");
  const Json::Array* const asked = names == nullptr ? nullptr : names->as<Json::Array>();
  const Trial trial = make_trial(scheme, {.length = integer(question.fields, "length", 256)});
  Json::Array list;
  for (const PropertyCard& card : property_cards()) {
    if (asked != nullptr && std::find(asked->begin(), asked->end(), Json(card.name)) == asked->end()) continue;
    const Finding one = measure(card.property, trial);
    list.push_back(Json::Object{{"property", card.name},
                                {"heading", card.heading},
                                {"statement", card.statement},
                                {"outcome", name_of(one.outcome)},
                                {"claim", name_of(one.claim)},
                                {"measured", one.measured},
                                {"bound", one.bound},
                                {"meaning", one.meaning}});
  }
  return {Json::Object{{"scheme", json_of(scheme)}, {"findings", std::move(list)}}, {}};
}

/// What a scheme adds to the work of one token in one head, counted.
Answer cost(const Question& question) {
  const Json* const found = question.fields.find("scheme");
  if (found == nullptr) raise("scheme is missing");
  const TokenCost counted = cost_per_token(scheme_from(*found), {.keys = integer(question.fields, "keys", 64)});
  return {Json::Object{
              {"operations", counted.operations}, {"numbers", counted.numbers}, {"parameters", counted.parameters}},
          {}};
}

}  // namespace posenc::page
