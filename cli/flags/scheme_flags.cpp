#include "cli/flags/scheme_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "cli/arrays/input_array.h"
#include "cli/arrays/numbers.h"
#include "cli/flags/help.h"
#include "cli/system/failure.h"
#include "posenc/aliases.h"
#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/schemes/choice.h"

namespace posenc::cli {
namespace {

// A field's flag: first_dim is --first-dim.
std::string flag_of(std::string_view field) {
  std::string flag = fmt::format("--{}", field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// "--base,--theta,--rope-theta,--rope_theta": every name of a field, with dashes and as in JSON.
std::string all_names(std::string_view field) {
  std::string names = flag_of(field);
  const auto add = [&](const std::string& flag) {
    if (fmt::format(",{},", names).find(fmt::format(",{},", flag)) == std::string::npos) names += "," + flag;
  };
  add(fmt::format("--{}", field));
  for (const std::string_view other : other_names(field)) {
    add(flag_of(other));
    add(fmt::format("--{}", other));
  }
  return names;
}

// The first two aliases of a field: one that people type, and that of config.json.
std::string with_other_names(std::string help, std::string_view field) {
  const std::span<const std::string_view> others = other_names(field);
  if (others.empty()) return help;
  help += "\nalso ";
  for (std::size_t i = 0; i < std::min<std::size_t>(others.size(), 2); ++i) {
    help += fmt::format("{}{}", i == 0 ? "" : ", ", flag_of(others[i]));
  }
  return help;
}

// A list as in JSON: 16,24,24 is [16,24,24].
std::string list_as_json(std::string_view text) {
  return text.starts_with('[') ? std::string(text) : fmt::format("[{}]", text);
}

// yarn:factor=4,truncate=false is {"type":"yarn","factor":4,"truncate":false}; lists are separated by slashes.
std::string choice_as_json(std::string_view text) {
  if (text.starts_with('{')) return std::string(text);
  const std::size_t colon = text.find(':');
  Json::Object object = {{"type", std::string(text.substr(0, colon))}};
  std::string json = dump_json(object);
  std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) {
      refuse(fmt::format("--scaling: '{}' is not of the form name=value", part));
    }
    std::string value(part.substr(equals + 1));
    if (value.find('/') != std::string::npos) {
      std::replace(value.begin(), value.end(), '/', ',');
      value = fmt::format("[{}]", value);
    }
    json.back() = ',';
    json += fmt::format("{}:{}}}", dump_json(std::string(part.substr(0, equals))), value);
  }
  return json;
}

template <class T> constexpr bool kIsList = false;
template <class T> constexpr bool kIsList<std::vector<T>> = true;
template <class T> constexpr bool kIsOneOf = false;
template <> constexpr bool kIsOneOf<Boxed<RopeScaling>> = true;

template <class... T> std::vector<std::string_view> names_of(const std::variant<T...>*) { return {T::name...}; }
std::vector<std::string_view> names_of(const Boxed<RopeScaling>* scaling) { return names_of(&**scaling); }

// Whether it begins with a known name: yarn:…
void check_name(std::string_view text, std::string_view field, const std::vector<std::string_view>& names) {
  const std::string_view name = text.substr(0, text.find(':'));
  const Json meant = scaling_meant(Json::Object{{"type", std::string(name)}});
  const std::string_view ours = *meant.find<std::string>("type");
  if (text.starts_with('{') || std::find(names.begin(), names.end(), ours) != names.end()) return;
  const std::string_view near = nearest_name(name, names);
  const std::string hint = near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
  refuse(fmt::format("{}: '{}' is not one of {}{}", flag_of(field), name, fmt::join(names, ", "), hint));
}

// Where a field's text comes from, for messages.
struct FieldOf {
  std::string_view scheme;
  std::string_view field;
};

std::size_t choice_from(std::string_view text, std::string_view flag, std::span<const std::string_view> names) {
  auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) found = std::find(names.begin(), names.end(), choice_meant(text));
  if (found == names.end()) {
    refuse(fmt::format("{}: '{}' is not one of {}", flag, text, fmt::join(names, ", ")));
  }
  return found - names.begin();
}

// Reads a field that JSON can represent as JSON: the scheme with only this field.
Scheme scheme_with(const FieldOf& of, const std::string& json) {
  try {
    return scheme_from_json(fmt::format(R"({{"scheme":"{}","{}":{}}})", of.scheme, of.field, json));
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", flag_of(of.field), error.what()));
  }
}

template <class T> std::string help_of_field(std::string_view help, const void* at) {
  const T& default_value = *static_cast<const T*>(at);
  if constexpr (Choice<T>) {
    return fmt::format("{}\none of {} (default {})", help, fmt::join(ChoiceNames<T>::value, ", "),
                       choice_name(default_value));
  } else if constexpr (kIsOneOf<T>) {
    return fmt::format(
        "{}, as yarn:factor=4,original_length=32768 or the object of config.json\n"
        "one of {} (default {})\n"
        "posenc list --scalings has their fields",
        help, fmt::join(names_of(&default_value), ", "), names_of(&default_value).front());
  } else if constexpr (kIsList<T>) {
    return fmt::format("{}", help);
  } else {
    return fmt::format("{} (default {})", help, default_value);
  }
}

template <class T> FlagValues values_of_field(const void* at) {
  const T& default_value = *static_cast<const T*>(at);
  FlagValues values;
  if constexpr (Choice<T>) {
    values.default_value = choice_name(default_value);
    values.choices.assign(ChoiceNames<T>::value.begin(), ChoiceNames<T>::value.end());
  } else if constexpr (kIsOneOf<T>) {
    const std::vector<std::string_view> names = names_of(&default_value);
    values.default_value = names.front();
    values.choices.assign(names.begin(), names.end());
  } else if constexpr (!kIsList<T>) {
    values.default_value = fmt::format("{}", default_value);
    if constexpr (std::is_same_v<T, bool>) values.choices = {"true", "false"};
  }
  return values;
}

template <class T> constexpr std::string_view placeholder_of() {
  if constexpr (Choice<T>) return "WORD";
  if constexpr (kIsOneOf<T>) return "TYPE:…";
  if constexpr (std::is_same_v<T, bool>) return "BOOL";
  if constexpr (kIsList<T>) return "N,N,…";
  return std::is_same_v<T, double> ? "X" : "N";
}

template <class T> void set_field(void* at, const FieldOf& of, std::string_view text);

// What flags need to know about a type of field. A scheme's fields are accessed through this, so that what follows is
// compiled once for each type, not for each field of each scheme.
struct FieldType {
  std::string_view placeholder;
  bool takes_object = false;  // its value may be a JSON object
  std::string (*help)(std::string_view help, const void* default_value) = nullptr;
  FlagValues (*values)(const void* default_value) = nullptr;
  void (*set)(void* at, const FieldOf& of, std::string_view text) = nullptr;
};
template <class T> constexpr FieldType kFieldType = {placeholder_of<T>(), kIsOneOf<T>, help_of_field<T>,
                                                     values_of_field<T>, set_field<T>};

struct AnyField {
  std::string_view name;
  std::string_view help;
  void* at;
  const FieldType* type;
};

std::vector<AnyField> fields_of(Scheme& scheme) {
  std::vector<AnyField> list;
  const auto visit_scheme = [&]<class S>(S& one) {
    S::fields([&]<class T>(std::string_view name, T S::*member, std::string_view help) {
      list.push_back({name, help, &(one.*member), &kFieldType<T>});
    });
  };
  std::visit(visit_scheme, scheme);
  return list;
}

AnyField field_named(const std::vector<AnyField>& fields, std::string_view name) {
  return *std::find_if(fields.begin(), fields.end(), [&](const AnyField& field) { return field.name == name; });
}

template <class T> void set_field(void* at, const FieldOf& of, std::string_view text) {
  T& value = *static_cast<T*>(at);
  const std::string flag = flag_of(of.field);
  if constexpr (Choice<T>) {
    value = static_cast<T>(choice_from(text, flag, ChoiceNames<T>::value));
  } else if constexpr (std::is_same_v<T, double>) {
    value = number_from(text, flag);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    value = integer_from(text, flag);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (text != "true" && text != "false") refuse(fmt::format("{}: '{}' is not true or false", flag, text));
    value = text == "true";
  } else {
    static_assert(kIsList<T> || kIsOneOf<T>, "a field of this type needs a way to be written as a flag");
    if constexpr (kIsOneOf<T>) check_name(text, of.field, names_of(&value));
    Scheme read = scheme_with(of, kIsList<T> ? list_as_json(text) : choice_as_json(text));
    value = std::move(*static_cast<T*>(field_named(fields_of(read), of.field).at));
  }
}

// The table that a scheme takes from --table; vectors dotted with q and k have their own flags (attend).
TrainedTable table_from_file(const Scheme& scheme) {
  TrainedTable table = trained_table_of(scheme);
  return has_vectors(table) ? TrainedTable{} : table;
}

bool is_letters(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// The flags of a scheme's fields, with these defaults. request->scheme has its type when they are read.
void add_fields(Command verb, Command command, const std::shared_ptr<SchemeRequest>& request, Scheme defaults) {
  for (const AnyField& field : fields_of(defaults)) {
    const std::string flag = flag_of(field.name);
    const auto set = [request, name = std::string(field.name)](const std::string& text) {
      const AnyField given = field_named(fields_of(request->scheme), name);
      given.type->set(given.at, {name_of(request->scheme), name}, text);
      request->given.push_back(name);
    };
    const auto add_field = [&] {
      if (field.name == "axes" && verb.has_option(flag)) {
        // a verb has a flag of that name as well; its values are letters, the field's a number
        const auto sort_out = [request, set](const std::string& text) {
          is_letters(text) ? void(request->axes_of_x = text) : set(text);
        };
        return command.add_option(flag, sort_out).trigger_on_parse();
      }
      return command.add_option(all_names(field.name), set);
    };
    add_field()
        .description(with_other_names(field.type->help(field.help, field.at), field.name))
        .type_name(std::string(field.type->placeholder))
        .group(kFieldGroup)
        .values(field.type->values(field.at));
  }
  if (const TrainedTable table = table_from_file(defaults); !table.axes.empty()) {
    const std::string help =
        fmt::format("the trained table, {}; its sizes are taken from the file", axes_text(table));
    command.add_option("--table", request->weights_path, help).type_name("FILE").group(kFieldGroup);
  }
}

std::string_view formula_of(const Scheme& scheme) {
  return std::visit([]<class S>(const S&) { return S::formula; }, scheme);
}

void add_command(Command verb, const Scheme& scheme, const std::shared_ptr<SchemeRequest>& request) {
  Command command = verb.add_subcommand(name_of(scheme), formula_of(scheme));
  // flags of the verb may follow the scheme's name
  command.fallthrough();
  // Called before any of its flags is read; they are declared only now, because declaring those of all schemes would
  // take most of the startup time. A scheme given as JSON is already there.
  command.before_parsing([verb, command, request, scheme] {
    request->is_chosen = true;
    if (request->scheme.index() != scheme.index()) request->scheme = scheme;
    add_fields(verb, command, request, scheme);
  });
}

// Whether this is the flag of a field whose value may be a JSON object.
bool takes_object(std::string_view flag) {
  for (const std::string_view name : scheme_names()) {
    Scheme scheme = scheme_named(name);
    for (const AnyField& field : fields_of(scheme)) {
      if (field.type->takes_object && flag_of(field.name) == flag) return true;
    }
  }
  return false;
}

// The location of a field of that name, if it is an integer.
std::int64_t* find_integer(Scheme& scheme, std::string_view name) {
  for (const AnyField& field : fields_of(scheme)) {
    if (field.name == name && field.type == &kFieldType<std::int64_t>) return static_cast<std::int64_t*>(field.at);
  }
  return nullptr;
}

}  // namespace

SchemeRequest take_json_scheme(std::vector<std::string>& arguments) {
  const auto is_json = [](const std::string& text) { return text.starts_with('{') && text.ends_with('}'); };
  // A value of --spec is never a scheme; that of a field may be a scaling.
  const auto is_value_of = [](std::string_view flag) { return flag == "--spec" || takes_object(flag); };
  auto found = std::find_if(arguments.begin(), arguments.end(), is_json);
  while (found != arguments.begin() && found != arguments.end() && is_value_of(*(found - 1))) {
    found = std::find_if(found + 1, arguments.end(), is_json);
  }
  SchemeRequest request;
  if (found == arguments.end()) return request;
  try {
    request.scheme = scheme_from_json(*found);
    const Json json = parse_json(*found);
    for (const auto& [key, value] : *json.as<Json::Object>()) request.given.push_back(key);
  } catch (const Error& error) {
    refuse(fmt::format("scheme in JSON: {}", error.what()));
  }
  *found = name_of(request.scheme);
  return request;
}

void add_table_flag(Command verb, const std::shared_ptr<SchemeRequest>& request) {
  verb.add_option("--table", request->weights_path, "with --model: the trained table, if the model has one")
      .type_name("FILE");
}

void add_scheme_commands(Command verb, const std::shared_ptr<SchemeRequest>& request) {
  verb.require_at_most_one();
  for (const std::string_view name : scheme_names()) add_command(verb, scheme_named(name), request);
}

Command command_of_scheme(Command parent, std::string_view name, const std::shared_ptr<SchemeRequest>& request) {
  const Scheme scheme = scheme_named(name);
  Command command = parent.add_subcommand(name_of(scheme), formula_of(scheme));
  add_fields(parent, command, request, scheme);
  return command;
}

std::optional<std::int64_t> integer_field(const Scheme& scheme, std::string_view name) {
  Scheme copy = scheme;
  const std::int64_t* const value = find_integer(copy, name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::vector<std::string> field_names(const Scheme& scheme) {
  Scheme copy = scheme;
  std::vector<std::string> names;
  for (const AnyField& field : fields_of(copy)) names.emplace_back(field.name);
  return names;
}

void follow_file(SchemeRequest& request, std::string_view field, std::int64_t value, std::string_view origin) {
  std::int64_t* const current = find_integer(request.scheme, field);
  if (current == nullptr) return;
  if (is_given(request, field) && *current != value) {
    refuse(fmt::format("{} has {} {}, but {} says {}", origin, field, value,
                       request.model.empty() ? flag_of(field) : request.model, *current));
  }
  *current = value;
}

NpyArray read_weights(SchemeRequest& request, const NpyOptions& options) {
  const TrainedTable table = table_from_file(request.scheme);
  const std::string_view name = name_of(request.scheme);
  if (table.axes.empty()) return {};
  const std::string& path = request.weights_path;
  if (path.empty() && table.is_optional) return {};
  if (path.empty()) refuse(fmt::format("{}: the trained table is missing (--table FILE.npy)", name));
  const InputArray input(path, options);
  if (input.shape().rank != static_cast<int>(table.axes.size())) {
    refuse(fmt::format("{} has shape {}; a {} table is {}", path, to_string(input.shape()), name, axes_text(table)));
  }
  if (input.type() == DataType::kI64)
    refuse(fmt::format("{} contains integers; a {} table is f32, f64, f16 or bf16", path, name));
  int axis = 0;
  for (const auto& [field, extent] : table.axes) follow_file(request, field, input.shape()[axis++], path);
  return load_array(input);
}

bool is_given(const SchemeRequest& request, std::string_view field) {
  return std::find(request.given.begin(), request.given.end(), field) != request.given.end();
}

Form form_of(const SchemeRequest& request, PrepareOptions options, const NpyArray& weights) {
  if (!weights.bytes.empty() && !table_from_file(request.scheme).axes.empty()) options.weights = weights.view();
  return prepare(request.scheme, options);
}

}  // namespace posenc::cli
