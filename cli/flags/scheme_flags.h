#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command.h"
#include "posenc/npy.h"
#include "posenc/scheme.h"

namespace posenc::cli {

/// The scheme of a command line: a name with flags, or JSON, or JSON and flags that change it.
struct SchemeRequest {
  Scheme scheme;
  bool is_chosen = false;
  std::vector<std::string> given;  // the fields that the user set
  std::string weights_path;        // --table of a learned scheme
  std::string model;               // the path of the model that it is of; empty: it is the user's own
  std::string axes_of_x;           // --axes with letters: a flag of apply, unlike the field of that name
};

/// Puts our names for other names of schemes among the words of a verb that takes schemes: RoPE, rotary.
void accept_other_names(std::vector<std::string>& arguments);

/// Takes a scheme in JSON out of the arguments and leaves its name in its place.
/// Throws: Failure for JSON that is no scheme.
SchemeRequest take_json_scheme(std::vector<std::string>& arguments);

/// --table for verbs that also take a scheme from a model, which has no command of its own.
void add_table_flag(Command verb, const std::shared_ptr<SchemeRequest>& request);

/// Adds one command for each scheme to a verb, with one flag for each field of the scheme.
void add_scheme_commands(Command verb, const std::shared_ptr<SchemeRequest>& request);

/// One of these commands alone, with its flags declared: to list them.
Command command_of_scheme(Command parent, std::string_view name, const std::shared_ptr<SchemeRequest>& request);

/// The value of an integer field, where the scheme has one of this name.
std::optional<std::int64_t> integer_field(const Scheme& scheme, std::string_view name);

/// Every field of a scheme, in order.
std::vector<std::string> field_names(const Scheme& scheme);

/// Sets an integer field to what a file says, unless the user gave it; `origin` names the file.
/// Throws: Failure where the two contradict each other.
void follow_file(SchemeRequest& request, std::string_view field, std::int64_t value, std::string_view origin);

/// Reads the table of a scheme that has a trained one; its sizes then follow from the file. Empty for all others.
/// Throws: Failure where --table is missing, or contradicts the fields.
NpyArray read_weights(SchemeRequest& request, const NpyOptions& options);

/// Whether the user set this field, by a flag or in JSON.
bool is_given(const SchemeRequest& request, std::string_view field);

/// The request's form, now. Throws: Failure or Error where its fields are wrong.
Form form_of(const SchemeRequest& request, Situation now, const NpyArray& weights);

}  // namespace posenc::cli
