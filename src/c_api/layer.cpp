#include "posenc/layer.h"

#include <cstring>
#include <memory>

#include "c_api/arguments.h"
#include "c_api/option_kinds.h"
#include "posenc/gguf.h"
#include "posenc/json.h"

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

// The C options refer to the other members.
struct posenc_layer {
  posenc_form position, addition;
  bool has_addition = false;
  double scale = 1.0;
  posenc_temperature temperature = {};
  posenc_tensor sinks = {};
  std::int64_t sinks_shape = 0, sinks_stride = 1;
  posenc_attention_options attention = {};
  std::int64_t first_position = 0;
  std::vector<std::string> notes;
};

namespace posenc::c_api {

Model model_from(const char* file, size_t size) {
  const std::string_view text(file, size);
  if (!text.starts_with("GGUF")) return read_model(text);
  const auto bytes = std::as_bytes(std::span(file, size));
  return read_model(read_gguf_head(bytes), bytes);
}

namespace {

// The options of a layer in C's terms.
struct LayerOptions {
  posenc_layer& made;
  const posenc_tensor* sinks;

  // Whatever refers to the tensors of a call is no property of a layer.
  template <class T> typename InC<T>::Type in_c(const char* name, const T&) const {
    refuse(POSENC_UNSUPPORTED, fmt::format("layer: the C API does not support the option {}", name));
  }
  std::int64_t in_c(const char*, std::int64_t number) const { return number; }
  double in_c(const char*, double number) const { return number; }
  std::int32_t in_c(const char*, bool flag) const { return flag ? 1 : 0; }
  const posenc_form* in_c(const char*, const Form&) const { return &made.position; }
  const double* in_c(const char*, const std::optional<double>& scale) const { return &(made.scale = *scale); }
  const posenc_temperature* in_c(const char*, const std::optional<Temperature>& temperature) const {
    if (!temperature->head_scales.empty()) {
      refuse(POSENC_UNSUPPORTED, "layer: the C API does not support a temperature with one scale per head");
    }
    made.temperature = {.size = sizeof made.temperature,
                        .scale = temperature->scale,
                        .length = temperature->length,
                        .shift = temperature->shift,
                        .rule = static_cast<std::int32_t>(temperature->rule)};
    return &made.temperature;
  }
  const posenc_tensor* in_c(const char* name, const ConstTensorView& view) const {
    if (std::string_view(name) != "sinks") return in_c<ConstTensorView>(name, view);
    made.sinks = *sinks;
    made.sinks_shape = view.shape[0];
    made.sinks_stride = view.strides[0];
    made.sinks.shape = &made.sinks_shape;
    made.sinks.strides = &made.sinks_stride;
    return &made.sinks;
  }
};

void set_options(const AttentionOptions& from, const LayerOptions& to) {
  to.made.attention.size = sizeof to.made.attention;
  each_in_c([&]<class T>(const char* name, T AttentionOptions::*member, const char*, std::size_t offset) {
    if (!is_given(from.*member)) return;
    const typename InC<T>::Type in_c = to.in_c(name, from.*member);
    std::memcpy(reinterpret_cast<std::byte*>(&to.made.attention) + offset, &in_c, sizeof(typename InC<T>::Type));
  });
}

}  // namespace
}  // namespace posenc::c_api

extern "C" {

int posenc_layer_read(const char* file, size_t size, int64_t i, const posenc_layer_inputs* inputs,
                      posenc_layer** out) {
  return guarded([&] {
    require(file, "layer", "the file");
    require(out, "layer", "out");
    const posenc_layer_inputs given = known(inputs, "posenc_layer_inputs");
    if (given.causal < 0 || given.causal > 2) {
      refuse(fmt::format("layer: causal must be 0, 1 or 2 but is {}", given.causal));
    }
    LayerInputs its{.part = given.part == nullptr ? "" : given.part,
                    .prepare = prepare_options_of(given.prepare),
                    .sinks = view_of(given.sinks, "layer", "sinks")};
    if (its.sinks.data != nullptr && its.sinks.shape.rank != 1) {
      refuse(fmt::format("layer: sinks must have 1 axis, heads, but have {}", its.sinks.shape.rank));
    }
    if (given.causal != 0) its.causal = given.causal == 1;
    PreparedLayer prepared = layer(model_from(file, size), i, its);
    auto made = std::make_unique<posenc_layer>();
    set_options(prepared.attention, {*made, given.sinks});
    made->position.form = std::move(prepared.attention.position);
    made->first_position = prepared.first_position;
    made->notes = std::move(prepared.notes);
    if (prepared.addition) {
      made->addition.form = std::move(*prepared.addition);
      made->has_addition = true;
    }
    *out = made.release();
  });
}

const posenc_attention_options* posenc_layer_attention(const posenc_layer* layer) {
  return layer == nullptr ? nullptr : &layer->attention;
}

const posenc_form* posenc_layer_addition(const posenc_layer* layer) {
  return layer == nullptr || !layer->has_addition ? nullptr : &layer->addition;
}

int64_t posenc_layer_first_position(const posenc_layer* layer) {
  return layer == nullptr ? 0 : layer->first_position;
}

int posenc_layer_notes(const posenc_layer* layer, char** json) {
  return guarded([&] {
    require(layer, "layer_notes", "the layer");
    require(json, "layer_notes", "json");
    Json::Array notes;
    for (const std::string& note : layer->notes) notes.emplace_back(note);
    *json = text_from(dump_json(std::move(notes)));
  });
}

void posenc_layer_free(posenc_layer* layer) { delete layer; }

}  // extern "C"
