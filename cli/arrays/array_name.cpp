#include "cli/arrays/array_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/system/failure.h"
#include "posenc/npy.h"
#include "posenc/safetensors.h"
#include "posenc/scheme.h"

namespace posenc::cli {
namespace {

struct Ending {
  std::string_view text;
  ArrayFormat format;
};
constexpr Ending kEndings[] = {{".npz", ArrayFormat::kNpz}, {".safetensors", ArrayFormat::kSafetensors}};

// The first few of what may be a million.
std::string listed(const std::vector<std::string_view>& names) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += fmt::format("{}{}", i > 0 ? ", " : "", shortened(names[i]));
  }
  return names.size() > kShown ? fmt::format("{} and {} more", text, names.size() - kShown) : text;
}

// The comparison takes time proportional to the product of the lengths, too long for every name in an untrusted file.
std::string_view nearest_of(std::string_view wanted, const std::vector<std::string_view>& names) {
  constexpr std::size_t kMost = 10'000;
  std::vector<std::string_view> candidates;
  for (const std::string_view name : names) {
    if (name == shortened(name) && candidates.size() < kMost) candidates.push_back(name);
  }
  return nearest_name(wanted, candidates);
}

}  // namespace

ArrayName array_name_from(const std::string& text) {
  ArrayName result{text, ArrayFormat::kNpy, std::nullopt};
  std::size_t first = std::string::npos;
  for (const Ending& ending : kEndings) {
    if (text.ends_with(ending.text) && first == std::string::npos) result.format = ending.format;
    const std::size_t at = text.find(fmt::format("{}:", ending.text));
    if (at >= first) continue;
    first = at;
    const std::size_t colon = at + ending.text.size();
    result = {text.substr(0, colon), ending.format, text.substr(colon + 1)};
  }
  return result;
}

std::size_t choose_array(const ArrayName& wanted, const std::vector<std::string_view>& names) {
  if (names.empty()) refuse(fmt::format("{} contains no arrays", wanted.path));
  if (!wanted.name) {
    if (names.size() == 1) return 0;
    refuse(fmt::format("{0} contains {1} arrays; name one, e.g. {0}:{2} (choose from: {3})", wanted.path,
                       names.size(), shortened(names.front()), listed(names)));
  }
  const auto found = std::find(names.begin(), names.end(), *wanted.name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::string_view near = nearest_of(*wanted.name, names);
  refuse(fmt::format(
      "{} contains no array '{}' ({})", wanted.path, *wanted.name,
      near.empty() ? fmt::format("choose from: {}", listed(names)) : fmt::format("did you mean '{}'?", near)));
}

std::string_view shortened(std::string_view name) {
  constexpr std::size_t kMost = 120;
  std::size_t end = std::min(name.size(), kMost);
  while (end < name.size() && end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // UTF-8
  return name.substr(0, end);
}

std::string array_head(ArrayFormat format, std::string_view name, DataType type, const Extents& shape) {
  if (format != ArrayFormat::kSafetensors) return npy_head(type, shape);
  SafetensorsHead head;
  head.tensors.emplace_back();
  head.tensors.front().name = name;
  head.tensors.front().type = type;
  head.tensors.front().shape = shape;
  return lay_out_safetensors(head);
}

}  // namespace posenc::cli
