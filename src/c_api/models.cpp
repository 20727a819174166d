#include <algorithm>
#include <string_view>

#include "c_api/arguments.h"
#include "posenc/backend.h"
#include "posenc/check.h"
#include "posenc/compare.h"
#include "posenc/diagnosis.h"
#include "posenc/report_json.h"

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

namespace {

// Writes `json` only on success.
void give(const Json& json, char** out) { *out = text_from(dump_json(json)); }

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    words.push_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return words;
}

}  // namespace

extern "C" {

int posenc_schemes(char** json) {
  return guarded([&] {
    require(json, "schemes", "json");
    give(schemes_json(), json);
  });
}

int posenc_backends(char** json) {
  return guarded([&] {
    require(json, "backends", "json");
    give(backends_json(), json);
  });
}

int posenc_backend(char** name) {
  return guarded([&] {
    require(name, "backend", "name");
    *name = text_from(std::string(backend()));
  });
}

int posenc_force_backend(const char* name) {
  return guarded([&] { force_backend(name == nullptr ? "" : name); });
}

int posenc_threads(int* count) {
  return guarded([&] {
    require(count, "threads", "count");
    *count = threads();
  });
}

int posenc_set_threads(int count) {
  return guarded([&] { set_threads(count); });
}

int posenc_synchronize(void* stream) {
  return guarded([&] { synchronize(Run{.stream = stream}); });
}

int posenc_read_model(const char* file, size_t size, char** json) {
  return guarded([&] {
    require(file, "read_model", "the file");
    require(json, "read_model", "json");
    give(json_of(model_from(file, size)), json);
  });
}

int posenc_compare_engines(const char* file, size_t size, const char* engines, int64_t length, char** json) {
  return guarded([&] {
    require(file, "compare_engines", "the file");
    require(json, "compare_engines", "json");
    const std::vector<std::string_view> names = words_of(engines == nullptr ? "" : engines);
    give(json_of(compare_engines(model_from(file, size), {.engines = names, .length = length})), json);
  });
}

int posenc_check(const char* scheme_json, const posenc_tensor* before, const posenc_tensor* after,
                 const posenc_check_options* options, char** json) {
  return guarded([&] {
    require(scheme_json, "check", "the scheme");
    require(json, "check", "json");
    const posenc_check_options given = known(options, "posenc_check_options");
    const HeldPositions positions(given.positions, "check"), keys(given.keys, "check");
    const CheckOptions all{.positions = positions.ids.values(),
                           .keys = keys.ids.values(),
                           .axes = positions.value.axes,
                           .first_position = positions.value.first,
                           .is_causal = given.causal != 0,
                           .weights = view_of(given.weights, "check", "weights"),
                           .tolerance = given.tolerance,
                           .length = given.length};
    give(json_of(check(scheme_from_json(scheme_json), host_view(before, "check", "before"),
                       host_view(after, "check", "after"), all)),
         json);
  });
}

int posenc_diagnose(const posenc_tensor* before, const posenc_tensor* after, const posenc_positions* positions,
                    char** json) {
  return guarded([&] {
    require(json, "diagnose", "json");
    const HeldPositions where(positions, "diagnose");
    if (positions != nullptr && where.ids.values().empty()) refuse("diagnose: positions must have ids, or be NULL");
    give(json_of(diagnose(host_view(before, "diagnose", "before"), host_view(after, "diagnose", "after"),
                          {.positions = where.ids.values(), .axes = where.value.axes})),
         json);
  });
}

}  // extern "C"
