#include <fmt/format.h>

#include <cmath>

#include "posenc/json.h"

namespace posenc {
namespace {

/// Bytes of the UTF-8 character that begins here, or 0 where none does (RFC 3629: no surrogates, no long forms).
std::size_t character_length(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned lowest = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned highest = lead == 0xED ? 0x9F : 0xBF;
    return byte(1) >= lowest && byte(1) <= highest && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned lowest = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned highest = lead == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= lowest && byte(1) <= highest && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

void write_escaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  out += "\\u00";
  out += kHex[static_cast<unsigned char>(c) >> 4];
  out += kHex[static_cast<unsigned char>(c) & 0xF];
}

/// Always valid UTF-8, whatever the string holds (file names need not be).
void write_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = character_length(text);
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\' || c == '\x7F' || (length == 1 && c < ' ')) {
      write_escaped(out, c);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

/// The fewest digits that read back the same, laid out as Python does; always with a point or an exponent, so that
/// a double stays one.
void write_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  // Not std::to_chars: in libc++ it brings 100 KB of tables to a page, for the same digits.
  const std::string text = fmt::format("{}", value);
  out += text;
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

class Writer {
 public:
  Writer(std::string& out, int indent) : out_(out), indent_(indent > 0 ? static_cast<std::size_t>(indent) : 0) {}

  void write(const Json& json) {
    std::visit([this](const auto& value) { write(value); }, json.value());
  }

 private:
  void write(std::nullptr_t) { out_ += "null"; }
  void write(bool value) { out_ += value ? "true" : "false"; }
  void write(std::int64_t value) { out_ += std::to_string(value); }
  void write(double value) { write_double(out_, value); }
  void write(const std::string& value) { write_string(out_, value); }
  void write(const Json::Array& array) {
    write_list('[', array, ']', [this](const Json& element) { write(element); });
  }
  void write(const Json::Object& object) {
    write_list('{', object, '}', [this](const auto& member) {
      write_string(out_, member.first);
      out_ += indent_ == 0 ? ":" : ": ";
      write(member.second);
    });
  }

  template <class List, class WriteItem> void write_list(char open, const List& list, char close, WriteItem item) {
    out_ += open;
    ++depth_;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ',';
      break_line();
      item(list[i]);
    }
    --depth_;
    if (!list.empty()) break_line();
    out_ += close;
  }

  void break_line() {
    if (indent_ == 0) return;
    out_ += '\n';
    out_.append(indent_ * depth_, ' ');
  }

  std::string& out_;
  std::size_t indent_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string dump_json(const Json& json, int indent) {
  std::string out;
  Writer(out, indent).write(json);
  return out;
}

}  // namespace posenc
