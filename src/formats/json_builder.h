#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/json.h"

namespace posenc {

/// What is wrong with a JSON text, and where.
struct JsonComplaint {
  std::size_t offset = 0;
  std::string what;
};

/// "line L, column C"; both count from 1, columns count characters.
struct JsonPlace {
  std::int64_t line = 1;
  std::int64_t column = 1;
};
JsonPlace place_of(std::string_view text, std::size_t offset);

/// Receives one member of the outermost object and returns what is wrong with it, or nothing.
using JsonMemberVisit = std::function<std::string(std::string key, Json value)>;

/// Builds a Json from the events of any reader, within limits. Offsets are bytes of `text`, which must outlive it.
/// Every event returns false once something was rejected; the first error is kept.
class JsonBuilder {
 public:
  /// With `visit`, the outermost value must be an object, whose members are not kept: memory holds one at a time, and
  /// the limit on values applies to each. `visit` must then detect repeated keys of that object.
  JsonBuilder(std::string_view text, const JsonLimits& limits, JsonMemberVisit visit = nullptr);

  bool add(Json value, std::size_t offset);
  /// The text of a number as JSON or Python writes it.
  bool add_number(std::string_view number, std::size_t begin);
  /// `end` is the offset after the closing quote.
  bool add_string(std::string value, std::size_t end);
  bool key(std::string key, std::size_t end);
  bool open_array(std::size_t offset) { return open(false, offset); }
  bool open_object(std::size_t offset) { return open(true, offset); }
  bool close_array();
  bool close_object();

  Json take() { return std::move(root_); }
  const std::optional<JsonComplaint>& complaint() const { return complaint_; }

 private:
  struct Frame {
    bool is_object = false;
    Json::Array array;
    Json::Object object;
    std::string key;                    // of the next member
    std::vector<std::size_t> key_ends;  // offsets after the closing quotes
  };

  bool refuse(std::size_t offset, std::string what);
  bool count(std::size_t offset);
  bool open(bool is_object, std::size_t offset);
  bool attach(Json value);
  bool check_surrogates(std::string_view value, std::size_t end);
  std::size_t begin_of_string(std::size_t end) const;

  std::string_view text_;
  JsonLimits limits_;
  JsonMemberVisit visit_;
  std::int64_t values_ = 0;
  std::vector<Frame> frames_;
  Json root_;
  std::optional<JsonComplaint> complaint_;
};

/// Reads a JSON object member by member, as the builder does with `visit`.
/// Throws: Error "byte OFFSET: WHAT"; the text starts at `first_byte` of the file.
void read_json_members(std::string_view text, std::uint64_t first_byte, const JsonLimits& limits,
                       JsonMemberVisit visit);

}  // namespace posenc
