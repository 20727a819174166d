// Generates the struct posenc_attention_options of posenc_c.h from AttentionOptions::fields.
//
// c_options HEADER          exits with 1 if the header differs from the list
// c_options HEADER --write  corrects the header

#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

#include "c_api/option_kinds.h"

namespace {

constexpr std::string_view kBegin = "/* The options of attention, written by cmake/c_options.cpp";
constexpr std::string_view kEnd = "} posenc_attention_options;\n/* clang-format on */\n";

// Indexed by posenc_field_kind.
constexpr const char* kTypes[] = {"int32_t ",
                                  "int64_t ",
                                  "double ",
                                  "const double* ",
                                  "const posenc_form* ",
                                  "const posenc_positions* ",
                                  "const posenc_temperature* "};

std::string struct_text() {
  std::string text(kBegin);
  text +=
      " from AttentionOptions::fields in attention.h. NULL: not set. */\n/* clang-format off */\ntypedef struct {\n";
  text += "  size_t size;\n";
  posenc::c_api::each_in_c(
      [&]<class T>(const char* name, T posenc::AttentionOptions::*, const char* help, std::size_t) {
        constexpr auto kKind = static_cast<std::size_t>(posenc::c_api::InC<T>::kKind);
        const char* const type = kKind < std::size(kTypes) ? kTypes[kKind] : "const posenc_tensor* ";
        text += std::string("  ") + type + name + "; /* " + help + " */\n";
      });
  return text + std::string(kEnd);
}

std::string contents_of(const char* path) {
  std::string contents;
  std::FILE* const file = std::fopen(path, "rb");
  if (file == nullptr) return contents;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) contents.push_back(static_cast<char>(c));
  std::fclose(file);
  return contents;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2 || count > 3 || (count == 3 && std::string_view(words[2]) != "--write")) {
    std::fprintf(stderr, "c_options HEADER [--write]\n");
    return 2;
  }
  const std::string before = contents_of(words[1]);
  const std::size_t begin = before.find(kBegin), end = before.find(kEnd, begin);
  if (begin == std::string::npos || end == std::string::npos) {
    std::fprintf(stderr, "%s: no struct posenc_attention_options\n", words[1]);
    return 2;
  }
  const std::string after = before.substr(0, begin) + struct_text() + before.substr(end + kEnd.size());
  if (after == before) return 0;
  if (count == 2) {
    std::fprintf(
        stderr,
        "%s: posenc_attention_options differs from AttentionOptions::fields: build the target posenc_c_header\n",
        words[1]);
    return 1;
  }
  std::FILE* const file = std::fopen(words[1], "wb");
  const bool is_written = file != nullptr && std::fwrite(after.data(), 1, after.size(), file) == after.size();
  if (file == nullptr || std::fclose(file) != 0 || !is_written) {
    std::fprintf(stderr, "%s: cannot be written\n", words[1]);
    return 2;
  }
  return 0;
}
