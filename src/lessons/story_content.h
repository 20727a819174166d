#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/json.h"

namespace posenc::lessons {

/// The data of one story. Content is tested, but an entry that is missing or of the wrong type must still throw an
/// error that names it.
class StoryContent {
 public:
  explicit StoryContent(std::string_view story);

  const std::string& name() const { return name_; }
  std::string text(std::string_view key) const;
  double number(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  /// All rows, concatenated. They have equal lengths.
  std::vector<double> table(std::string_view key) const;
  bool has(std::string_view key) const { return json_.find(key) != nullptr; }

  /// The heading and text of an entry of "steps".
  std::pair<std::string, std::string> step(std::string_view id) const;
  /// An entry of "notes".
  std::string note(std::string_view id) const;
  /// From "printed": the numbers that the source text printed in the cells of this matrix; empty if it did not print
  /// the matrix, "" for a cell that it did not print.
  std::vector<std::vector<std::string>> printed(std::string_view matrix) const { return cells("printed", matrix); }
  /// From "illustrative": as `printed`, for numbers that the source text made up.
  std::vector<std::vector<std::string>> illustrative(std::string_view matrix) const {
    return cells("illustrative", matrix);
  }
  /// From "printed_facts": the printed number, or "".
  std::string printed_fact(std::string_view fact) const;

 private:
  std::vector<std::vector<std::string>> cells(std::string_view group, std::string_view matrix) const;
  const Json& member(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view what) const;
  double number_of(const Json& value, std::string_view key) const;

  std::string name_;
  Json json_;
};

}  // namespace posenc::lessons
