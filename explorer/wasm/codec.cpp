// Questions and answers as bytes: one that says what follows, then the value. src/codec.ts is the other end.

#include <cmath>
#include <cstring>
#include <limits>

#include "explorer/wasm/call.h"
#include "posenc/error.h"

namespace posenc::page {
namespace {

enum class Tag : std::uint8_t { kNull, kFalse, kTrue, kWhole, kReal, kText, kList, kRecord };

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  Json value(int depth = 0) {
    constexpr int kDeepest = 64;
    if (depth > kDeepest) raise("request: nested too deep");
    switch (plain<Tag>()) {
      case Tag::kNull:
        return nullptr;
      case Tag::kFalse:
        return false;
      case Tag::kTrue:
        return true;
      case Tag::kWhole:
        return plain<std::int64_t>();
      case Tag::kReal:
        return plain<double>();
      case Tag::kText:
        return text();
      case Tag::kList: {
        Json::Array list;
        for (auto left = plain<std::uint32_t>(); left > 0; --left) list.push_back(value(depth + 1));
        return list;
      }
      case Tag::kRecord: {
        Json::Object record;
        for (auto left = plain<std::uint32_t>(); left > 0; --left) {
          std::string name = text();
          record.emplace_back(std::move(name), value(depth + 1));
        }
        return record;
      }
    }
    raise("request: unknown tag");
  }

 private:
  std::span<const std::byte> taken(std::size_t count) {
    if (count > rest_.size()) raise("request: cut short");
    const std::span<const std::byte> part = rest_.first(count);
    rest_ = rest_.subspan(count);
    return part;
  }
  template <class T> T plain() {
    T value;
    std::memcpy(&value, taken(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const std::span<const std::byte> part = taken(plain<std::uint32_t>());
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

  std::span<const std::byte> rest_;
};

template <class T> void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

}  // namespace

Json decoded(std::span<const std::byte> bytes) { return Reader(bytes).value(); }

void encode(const Json& json, std::string& out) {
  if (const auto* truth = json.as<bool>()) {
    put(out, *truth ? Tag::kTrue : Tag::kFalse);
  } else if (const auto* whole = json.as<std::int64_t>()) {
    put(out, Tag::kWhole);
    put(out, *whole);
  } else if (const auto* real = json.as<double>()) {
    put(out, std::isfinite(*real) ? Tag::kReal : Tag::kNull);  // as in JSON
    if (std::isfinite(*real)) put(out, *real);
  } else if (const auto* text = json.as<std::string>()) {
    put(out, Tag::kText);
    put_text(out, *text);
  } else if (const auto* list = json.as<Json::Array>()) {
    put(out, Tag::kList);
    put(out, static_cast<std::uint32_t>(list->size()));
    for (const Json& one : *list) encode(one, out);
  } else if (const auto* record = json.as<Json::Object>()) {
    put(out, Tag::kRecord);
    put(out, static_cast<std::uint32_t>(record->size()));
    for (const auto& [name, value] : *record) {
      put_text(out, name);
      encode(value, out);
    }
  } else {
    put(out, Tag::kNull);
  }
}

}  // namespace posenc::page
