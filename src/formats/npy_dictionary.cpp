#include "formats/npy_dictionary.h"

#include <fmt/format.h>

#include <charconv>

#include "formats/byte_reader.h"
#include "formats/excerpt.h"

namespace posenc {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_word_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '+' ||
         c == '-';
}

bool all_digits(std::string_view text) {
  for (const char c : text) {
    if (!is_digit(c)) return false;
  }
  return !text.empty();
}

class Parser {
 public:
  Parser(std::string_view text, std::uint64_t offset) : text_(text), offset_(offset) {}

  NpyDictionary parse() {
    skip_space();
    expect('{', "the header must be a dictionary");
    for (skip_space(); !next_is('}'); skip_space()) {
      read_member();
      skip_space();
      if (!next_is(',')) break;
      ++at_;
    }
    const std::size_t end = at_;
    expect('}', "the dictionary must go on with ',' or end with '}'");
    if (!has_descr_) fail(end, "key 'descr' is missing");
    if (!has_fortran_order_) fail(end, "key 'fortran_order' is missing");
    if (!has_shape_) fail(end, "key 'shape' is missing");
    skip_space();
    if (at_ < text_.size()) fail(at_, fmt::format("nothing may follow the dictionary but {} does", found()));
    if (text_.back() != '\n') note("the header does not end in a newline");
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string_view what) const { raise_at(offset_ + at, what); }

  void note(std::string what) {
    for (const std::string& known : result_.notes) {
      if (known == what) return;
    }
    result_.notes.push_back(std::move(what));
  }

  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  /// The text at the current position, for a message.
  std::string found() const {
    if (at_ >= text_.size()) return "the header's end";
    if (is_printable(text_[at_])) return fmt::format("'{}'", text_[at_]);
    return fmt::format("byte 0x{:02x}", static_cast<unsigned char>(text_[at_]));
  }

  void expect(char c, std::string_view rule) {
    if (!next_is(c)) fail(at_, fmt::format("{}; got {}", rule, found()));
    ++at_;
  }

  std::string_view take_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word_character(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string_view take_string(std::string_view rule) {
    if (!next_is('\'') && !next_is('"')) fail(at_, fmt::format("{}; got {}", rule, found()));
    const char quote = text_[at_++];
    const std::size_t begin = at_;
    while (!next_is(quote)) {
      if (at_ >= text_.size() || !is_printable(text_[at_]) || text_[at_] == '\\') {
        fail(at_, fmt::format("a quoted string must be closed; got {}", found()));
      }
      ++at_;
    }
    return text_.substr(begin, at_++ - begin);
  }

  void read_member() {
    const std::size_t begin = at_;
    const std::string_view key = take_string("expected a quoted key");
    bool* const has = key == "descr"           ? &has_descr_
                      : key == "fortran_order" ? &has_fortran_order_
                      : key == "shape"         ? &has_shape_
                                               : nullptr;
    if (has == nullptr) {
      fail(begin, fmt::format("unknown key '{}' (only descr, fortran_order and shape may be there)", excerpt(key)));
    }
    if (*has) fail(begin, fmt::format("repeated key '{}'", key));
    *has = true;
    skip_space();
    expect(':', "a key must be followed by ':'");
    skip_space();
    if (has == &has_descr_) {
      read_descr();
    } else if (has == &has_shape_) {
      read_shape();
    } else {
      read_fortran_order();
    }
  }

  void read_descr() {
    if (next_is('[')) fail(at_, "structured dtypes are not read (save each field as an array of its own)");
    result_.descr_offset = offset_ + at_;
    result_.descr = take_string("descr must be a quoted dtype such as '<f4'");
  }

  void read_fortran_order() {
    const std::size_t begin = at_;
    const std::string_view word = take_word();
    if (word != "True" && word != "False") {
      const std::string value = word.empty() ? found() : excerpt(word);
      fail(begin, fmt::format("fortran_order must be True or False but is {}", value));
    }
    result_.fortran_order = word == "True";
  }

  void read_shape() {
    const std::size_t begin = at_;
    result_.shape_offset = offset_ + at_;
    expect('(', "shape must be a tuple such as (3, 4)");
    bool comma = true;  // the previous token; true at the start
    for (skip_space(); !next_is(')'); skip_space()) {
      if (!comma) fail(at_, fmt::format("shape must continue with ',' or end with ')'; got {}", found()));
      read_extent();
      skip_space();
      comma = next_is(',');
      if (comma) ++at_;
    }
    ++at_;
    if (result_.shape.rank == 1 && !comma) {
      fail(begin, fmt::format("shape must be a tuple but is a number (write ({},))", result_.shape[0]));
    }
  }

  void read_extent() {
    const std::size_t begin = at_;
    if (next_is('(')) fail(at_, "shape must not hold parentheses within parentheses");
    std::string_view word = take_word();
    if (word.empty()) fail(at_, fmt::format("expected an extent, got {}", found()));
    if (word.size() > 1 && word.back() == 'L' && all_digits(word.substr(0, word.size() - 1))) {
      word.remove_suffix(1);
      note("an extent ends in L, as Python 2 wrote it");
    }
    if (word.front() == '-' && all_digits(word.substr(1))) {
      fail(begin, fmt::format("an extent must not be negative but is {}", excerpt(word)));
    }
    if (!all_digits(word)) fail(begin, fmt::format("an extent must be an integer but is {}", excerpt(word)));
    if (word.size() > 1 && word.front() == '0') {
      fail(begin, fmt::format("an extent must not begin with 0 but is {}", excerpt(word)));
    }
    std::int64_t extent = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), extent).ec != std::errc{}) {
      fail(begin, fmt::format("an extent must be below 2^63 but is {}", excerpt(word)));
    }
    if (result_.shape.rank == Extents::kMax) {
      fail(begin, fmt::format("shape must have at most {} dimensions", Extents::kMax));
    }
    result_.shape.push_back(extent);
  }

  std::string_view text_;
  std::uint64_t offset_ = 0;
  std::size_t at_ = 0;
  bool has_descr_ = false;
  bool has_fortran_order_ = false;
  bool has_shape_ = false;
  NpyDictionary result_;
};

}  // namespace

NpyDictionary read_npy_dictionary(std::string_view text, std::uint64_t offset) {
  return Parser(text, offset).parse();
}

}  // namespace posenc
