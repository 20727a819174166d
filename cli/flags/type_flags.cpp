#include "cli/flags/type_flags.h"

#include <fmt/format.h>

namespace posenc::cli {

const std::vector<std::string_view>& float_type_names() {
  static const std::vector<std::string_view> kNames = {"f32", "f64", "f16", "bf16"};
  return kNames;
}

void add_numerics_flag(Command verb, std::string& numerics) {
  verb.add_choice("--numerics", numerics, {"exact", "hf-f32", "ggml-f32"},
                  "angles: exact, or the float32 ones of an engine, hf-f32 or ggml-f32");
}

void add_dtype_flag(Command verb, std::string& dtype, std::string_view what) {
  const std::string help =
      fmt::format("type of {}: f32, f64, f16 or bf16; required for bf16, which .npy cannot represent", what);
  verb.add_choice("--dtype", dtype, float_type_names(), help).type_name("TYPE");
}

}  // namespace posenc::cli
