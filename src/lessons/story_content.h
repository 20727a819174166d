#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/json.h"

namespace posenc::lessons {

/// The data of one story. Content is ours and checked by tests, but what is missing or of the wrong kind is still an
/// error that says where, never a crash.
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
  /// Rows of equal length, one after the other.
  std::vector<double> table(std::string_view key) const;
  bool has(std::string_view key) const { return json_.find(key) != nullptr; }

  /// Of "steps": {"heading","text"} by its id.
  std::pair<std::string, std::string> step(std::string_view id) const;
  /// Of "notes": by its id.
  std::string note(std::string_view id) const;
  /// Of "printed": what a text printed in the cells of this matrix, or nothing; "" where it printed nothing.
  std::vector<std::vector<std::string>> printed(std::string_view matrix) const { return cells("printed", matrix); }
  /// Of "illustrative": the same for numbers that a text made up.
  std::vector<std::vector<std::string>> illustrative(std::string_view matrix) const {
    return cells("illustrative", matrix);
  }
  /// Of "printed_facts": the one number, or "".
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
