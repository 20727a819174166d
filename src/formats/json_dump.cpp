#include <fmt/format.h>

#include <cmath>

#include <utf8/core.h>

#include "posenc/json.h"

namespace posenc {
namespace {

void write_escaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  if (const std::size_t at = kSpecial.find(c); at != std::string_view::npos) {
    out += {'\\', kLetters[at]};
    return;
  }
  out += "\\u00";
  out += kHex[static_cast<unsigned char>(c) >> 4];
  out += kHex[static_cast<unsigned char>(c) & 0xF];
}

/// Always valid UTF-8, whatever the string holds (file names need not be): each byte that is not part of a character
/// becomes U+FFFD.
void write_string(std::string& out, std::string_view text) {
  out += '"';
  while (true) {
    const std::size_t valid = utf8::find_invalid(text.begin(), text.end()) - text.begin();
    for (const char c : text.substr(0, valid)) {
      const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == '\x7F';
      is_control || c == '"' || c == '\\' ? write_escaped(out, c) : out.push_back(c);
    }
    if (valid == text.size()) break;
    out += "\\ufffd";
    text.remove_prefix(valid + 1);
  }
  out += '"';
}

/// The fewest digits that read back to the same number, formatted as in Python; always with a point or an exponent,
/// so that a double stays a double.
void write_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  // Not std::to_chars: libc++'s adds 100 KB of tables to a web page, for the same digits.
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
