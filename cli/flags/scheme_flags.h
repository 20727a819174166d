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

/// The scheme on the command line: a name with flags, or JSON, or JSON with flags that change it.
struct SchemeRequest {
  Scheme scheme;
  bool is_chosen = false;
  std::vector<std::string> given;  // the fields that the user set
  std::string weights_path;        // --table of a learned scheme
  std::string model;               // the path of the model it is from; empty: given by the user
  std::string axes_of_x;           // --axes with letters: a flag of apply, unlike the field of that name
};

/// Replaces aliases of schemes (RoPE, rotary) with our names, among the words of a verb that takes schemes.
void accept_other_names(std::vector<std::string>& arguments);

/// Removes a scheme in JSON from the arguments and leaves its name in its place.
/// Throws: Failure for JSON that is not a scheme.
SchemeRequest take_json_scheme(std::vector<std::string>& arguments);

/// --table for verbs that also take a scheme from a model, which has no command of its own.
void add_table_flag(Command verb, const std::shared_ptr<SchemeRequest>& request);

/// Adds one command per scheme to a verb, with one flag per field of the scheme.
void add_scheme_commands(Command verb, const std::shared_ptr<SchemeRequest>& request);

/// Only one of these commands, with its flags declared, for listing them.
Command command_of_scheme(Command parent, std::string_view name, const std::shared_ptr<SchemeRequest>& request);

/// The value of an integer field, if the scheme has one of this name.
std::optional<std::int64_t> integer_field(const Scheme& scheme, std::string_view name);

/// Every field of a scheme, in order.
std::vector<std::string> field_names(const Scheme& scheme);

/// Sets an integer field to the value in a file, unless the user gave it; `origin` names the file.
/// Throws: Failure if the two contradict each other.
void follow_file(SchemeRequest& request, std::string_view field, std::int64_t value, std::string_view origin);

/// Reads the table of a scheme that has a trained one; its sizes then follow from the file. Empty for all others.
/// Throws: Failure if --table is missing, or contradicts the fields.
NpyArray read_weights(SchemeRequest& request, const NpyOptions& options);

/// Whether the user set this field, by a flag or in JSON.
bool is_given(const SchemeRequest& request, std::string_view field);

/// The request's form, prepared now. Throws: Failure or Error if its fields are wrong.
Form form_of(const SchemeRequest& request, PrepareOptions options, const NpyArray& weights);

}  // namespace posenc::cli
