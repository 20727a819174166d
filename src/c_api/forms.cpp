#include <algorithm>
#include <memory>

#include "c_api/arguments.h"
#include "posenc/json.h"
#include "posenc/schemes/choice.h"
#include "posenc/schemes/rope.h"

namespace posenc::c_api {
namespace {

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

std::optional<DataType> type_named(const char* name) {
  return name == nullptr ? std::nullopt : std::optional(data_type_from(name));
}

}  // namespace

PrepareOptions prepare_options_of(const posenc_prepare_options* from) {
  const posenc_prepare_options given = known(from, "posenc_prepare_options");
  PrepareOptions options{
      .length = given.length,
      .precision = {.table = type_named(given.table_type), .arithmetic = type_named(given.arithmetic)},
      .weights = view_of(given.weights, "prepare", "weights"),
      .key_weights = view_of(given.key_weights, "prepare", "key_weights"),
      .value_weights = view_of(given.value_weights, "prepare", "value_weights")};
  if (given.numerics != nullptr) options.numerics = numerics_from(given.numerics);
  const Integers denominators(given.denominators, "prepare", "denominators");
  if (denominators.device() != Device::kHost) {
    refuse(POSENC_DEVICE, "prepare: denominators must be in host memory");
  }
  options.denominators.assign(denominators.values().begin(), denominators.values().end());
  return options;
}

namespace {

void prepare_into(const Scheme& scheme, const PrepareOptions& options, posenc_form** out) {
  const TrainedTable table = trained_table_of(scheme);
  if (options.weights.data != nullptr && table.axes.empty()) {
    refuse(fmt::format("prepare: {} has no trained table, but weights are given", name_of(scheme)));
  }
  if (options.key_weights.data != nullptr && !table.has_key_weights) {
    refuse(fmt::format("prepare: {} has no trained table for keys, but key_weights are given", name_of(scheme)));
  }
  if (options.value_weights.data != nullptr && !table.has_value_weights) {
    refuse(fmt::format("prepare: {} has no trained table for values, but value_weights are given", name_of(scheme)));
  }
  auto made = std::make_unique<posenc_form>();
  made->form = prepare(scheme, options);
  made->scheme = scheme;
  made->prepare = {.length = options.length,
                   .numerics = options.numerics,
                   .precision = options.precision,
                   .denominators = options.denominators};
  made->is_prepared = true;
  *out = made.release();
}

void make_rotation(const Rotation& rotation, posenc_form** out) {
  *out = std::make_unique<posenc_form>(posenc_form{.form = rotation}).release();
}

Json::Object json_of_form(const Form& form) {
  Json::Object object{{"kind", kind_of(form)}, {"axes", position_axes_of(form)}};
  if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    Json::Array frequencies;
    if (!has_table(*rotation)) {
      for (const double frequency : frequencies_of(*rotation)) frequencies.emplace_back(frequency);
    }
    object.emplace_back("pairs", pairs_of(*rotation));
    if (heads_of(*rotation) > 1) object.emplace_back("heads", heads_of(*rotation));
    object.emplace_back("layout", choice_name(rotation->layout));
    object.emplace_back("first_dim", rotation->first_dim);
    object.emplace_back("magnitude", rotation->magnitude);
    object.emplace_back("softmax_factor", rotation->softmax_factor);
    object.emplace_back("frequencies", std::move(frequencies));
  } else if (const auto* const bias = std::get_if<Bias>(&form)) {
    object.emplace_back("heads", bias->heads);
    object.emplace_back("needs_content", needs_content(*bias));
    object.emplace_back("softmax_factor", softmax_factor_of(*bias));
  } else if (const auto* const addition = std::get_if<Addition>(&form)) {
    Json::Array frequencies;
    if (const Waves* const waves = waves_of(*addition)) {
      for (const double frequency : frequencies_of(*waves)) frequencies.emplace_back(frequency);
    }
    object.emplace_back("width", addition->width);
    object.emplace_back("frequencies", std::move(frequencies));
  }
  return object;
}

}  // namespace
}  // namespace posenc::c_api

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

extern "C" {

int posenc_prepare(const char* scheme_json, const posenc_prepare_options* options, posenc_form** out) {
  return guarded([&] {
    require(scheme_json, "prepare", "the scheme");
    require(out, "prepare", "out");
    prepare_into(scheme_from_json(scheme_json), prepare_options_of(options), out);
  });
}

int posenc_prepare_table(const posenc_tensor* cosines, const posenc_tensor* sines, const char* layout,
                         posenc_form** out) {
  return guarded([&] {
    require(out, "prepare_table", "out");
    const RotationTable table{needed_view(cosines, "prepare_table", "cosines"),
                              needed_view(sines, "prepare_table", "sines")};
    Rotation rotation{.source = table};
    if (table.cosines.shape != table.sines.shape) {
      refuse(fmt::format("prepare_table: cosines are {}, but sines are {}", to_string(table.cosines.shape),
                         to_string(table.sines.shape)));
    }
    constexpr auto& kNames = ChoiceNames<PairLayout>::value;
    const std::string name = layout == nullptr ? std::string(kNames[0]) : text_of(layout);
    const auto* const at = std::find(kNames.begin(), kNames.end(), name);
    if (at == kNames.end()) {
      refuse(
          fmt::format("prepare_table: no layout '{}'; {}", name, suggestion(name, {kNames.begin(), kNames.end()})));
    }
    rotation.layout = static_cast<PairLayout>(at - kNames.begin());
    make_rotation(rotation, out);
  });
}

int posenc_form_bind(const posenc_form* form, const posenc_tensor* weights, const posenc_tensor* key_weights,
                     posenc_form** out) {
  return posenc_form_bind_all(form, weights, key_weights, nullptr, out);
}

int posenc_form_bind_all(const posenc_form* form, const posenc_tensor* weights, const posenc_tensor* key_weights,
                         const posenc_tensor* value_weights, posenc_form** out) {
  return guarded([&] {
    (void)form_of(form, "bind");
    require(out, "bind", "out");
    if (!form->is_prepared) refuse("bind: only a form that prepare made takes another table");
    PrepareOptions options = form->prepare;
    options.weights = view_of(weights, "bind", "weights");
    options.key_weights = view_of(key_weights, "bind", "key_weights");
    options.value_weights = view_of(value_weights, "bind", "value_weights");
    prepare_into(form->scheme, options, out);
  });
}

int posenc_form_adjoint(const posenc_form* form, posenc_form** out) {
  return guarded([&] {
    require(out, "adjoint", "out");
    make_rotation(adjoint(form_as<Rotation>(form, "adjoint")), out);
  });
}

int posenc_form_inverse(const posenc_form* form, posenc_form** out) {
  return guarded([&] {
    require(out, "inverse", "out");
    make_rotation(inverse(form_as<Rotation>(form, "inverse")), out);
  });
}

int posenc_form_head(const posenc_form* form, int64_t head, posenc_form** out) {
  return guarded([&] {
    require(out, "head", "out");
    make_rotation(head_of(form_as<Rotation>(form, "head"), head), out);
  });
}

int posenc_form_slice_heads(const posenc_form* form, int64_t first, int64_t count, posenc_form** out) {
  return guarded([&] {
    require(out, "slice_heads", "out");
    *out = std::make_unique<posenc_form>(posenc_form{.form = slice_heads(form_of(form, "slice_heads"), first, count)})
               .release();
  });
}

int posenc_form_for_keys(const posenc_form* form, posenc_form** out) {
  return guarded([&] {
    require(out, "for_keys", "out");
    make_rotation(for_keys(form_as<Rotation>(form, "for_keys")), out);
  });
}

int posenc_form_json(const posenc_form* form, char** json) {
  return guarded([&] {
    require(json, "form_json", "json");
    *json = text_from(dump_json(json_of_form(form_of(form, "form_json"))));
  });
}

void posenc_form_free(posenc_form* form) { delete form; }

int posenc_scheme_json(const char* name_or_json, char** json) {
  return guarded([&] {
    require(name_or_json, "scheme_json", "the scheme");
    require(json, "scheme_json", "json");
    const std::string text = text_of(name_or_json);
    const bool is_json = text.find('{') != std::string::npos;
    *json = text_from(to_json(is_json ? scheme_from_json(text) : scheme_named(text)));
  });
}

}  // extern "C"
