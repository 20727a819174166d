// What the library knows and measures of each scheme.

#include "posenc/properties.h"

#include <algorithm>

#include "explorer/wasm/call.h"
#include "posenc/error.h"
#include "posenc/report_json.h"

namespace posenc::page {

Answer list_schemes(const Question&) { return {schemes_json(), {}}; }

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
