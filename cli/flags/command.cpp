#include "cli/flags/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "cli/arrays/numbers.h"
#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

// Replaces CLI11's messages with plainer ones.
std::string plain_words(const CLI::ParseError& error) {
  std::string text = error.what();
  const std::string option = text.substr(0, text.find(':'));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return text.find("missing") != std::string::npos ? fmt::format("{} needs a value", option)
                                                     : fmt::format("{} was given more than once", option);
  }
  return text;
}

// The long name of "-o,--output".
std::string long_name_of(const std::string& names) { return names.substr(names.find("--")); }

// "from 0 to 17", "at least 1", "above 0".
[[noreturn]] void refuse_value(const std::string& flag, const std::string& text, const FlagValues& values,
                               bool without_least) {
  if (!values.most.empty()) {
    refuse(fmt::format("{}: {} is not from {} to {}", flag, text, values.least, values.most));
  }
  refuse(fmt::format("{}: {} must be {} {}", flag, text, without_least ? "above" : "at least", values.least));
}

FlagValues values_of(Integers range) {
  FlagValues values;
  if (range.least != Integers{}.least) values.least = fmt::format("{}", range.least);
  if (range.most != Integers{}.most) values.most = fmt::format("{}", range.most);
  return values;
}

FlagValues values_of(Decimals range) {
  FlagValues values;
  if (std::isfinite(range.least)) values.least = fmt::format("{}", range.least);
  if (std::isfinite(range.most)) values.most = fmt::format("{}", range.most);
  return values;
}

std::int64_t value_within(const std::string& flag, const std::string& text, Integers range) {
  const std::int64_t value = integer_from(text, flag);
  if (value < range.least || value > range.most) refuse_value(flag, text, values_of(range), false);
  return value;
}

double value_within(const std::string& flag, const std::string& text, Decimals range) {
  const double value = number_from(text, flag);
  const bool is_above = range.without_least ? value > range.least : value >= range.least;
  if (!is_above || !(value <= range.most)) refuse_value(flag, text, values_of(range), range.without_least);
  return value;
}

template <class Value, class Range>
Flag add_ranged(Command command, const std::string& names, Value& value, Range range, const std::string& help) {
  const auto set = [&value, flag = long_name_of(names), range](const std::string& text) {
    value = value_within(flag, text, range);
  };
  Flag added = command.add_option(names, set).description(help).values(values_of(range));
  added.type_name(std::is_same_v<Range, Integers> ? "N" : "X");
  if constexpr (std::is_arithmetic_v<Value>) added.default_value(fmt::format("{}", value));
  return added;
}

// "svg, png or pdf".
std::string one_of(const std::vector<std::string_view>& words) {
  if (words.size() == 1) return std::string(words.front());
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

}  // namespace

Flag Flag::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Flag Flag::group(std::string_view name) {
  option_->group(std::string(name));
  return *this;
}

Flag Flag::description(const std::string& text) {
  option_->description(text);
  return *this;
}

Flag Flag::trigger_on_parse() {
  option_->trigger_on_parse();
  return *this;
}

Flag Flag::values(FlagValues values) {
  (*all_)[option_] = std::move(values);
  return *this;
}

Flag Flag::choices(const std::vector<std::string_view>& words) {
  (*all_)[option_].choices.assign(words.begin(), words.end());
  return *this;
}

Flag Flag::default_value(const std::string& text) {
  (*all_)[option_].default_value = text;
  return description(fmt::format("{} (default {})", description(), text));
}

const std::vector<std::string>& Flag::long_names() const { return option_->get_lnames(); }

const std::vector<std::string>& Flag::short_names() const { return option_->get_snames(); }

const std::string& Flag::description() const { return option_->get_description(); }

const std::string& Flag::group() const { return option_->get_group(); }

std::string Flag::spelled() const {
  std::string text = fmt::format("--{}", option_->get_lnames().front());
  if (option_->get_items_expected_max() > 0) text += fmt::format(" {}", option_->get_type_name());
  return text;
}

bool Flag::is_given() const { return option_->count() > 0; }

bool Flag::takes_value() const { return option_->get_items_expected_max() > 0; }

std::string Flag::metavar() const {
  if (!takes_value()) return "";
  return long_names().empty() ? option_->get_name(true) : option_->get_type_name();
}

FlagValues Flag::values() const {
  const auto found = all_->find(option_);
  return found != all_->end() ? found->second : FlagValues{};
}

Command Command::add_subcommand(std::string_view name, std::string_view description) {
  return {app_->add_subcommand(std::string(name), std::string(description)), values_};
}

Flag Command::add_option(const std::string& names, std::string& value, const std::string& help) {
  return flag_of(app_->add_option(names, value, help));
}

Flag Command::add_option(const std::string& names, std::optional<std::string>& value, const std::string& help) {
  return flag_of(app_->add_option(names, value, help));
}

Flag Command::add_option(const std::string& names, std::vector<std::string>& values, const std::string& help) {
  return flag_of(app_->add_option(names, values, help));
}

Flag Command::add_option(const std::string& names, const std::function<void(const std::string&)>& set) {
  return flag_of(app_->add_option_function<std::string>(names, set));
}

Flag Command::add_flag(const std::string& names, bool& value, const std::string& help) {
  return flag_of(app_->add_flag(names, value, help));
}

Flag Command::add_integer(const std::string& names, std::int64_t& value, Integers range, const std::string& help) {
  return add_ranged(*this, names, value, range, help);
}

Flag Command::add_integer(const std::string& names, std::optional<std::int64_t>& value, Integers range,
                          const std::string& help) {
  return add_ranged(*this, names, value, range, help);
}

Flag Command::add_number(const std::string& names, double& value, Decimals range, const std::string& help) {
  return add_ranged(*this, names, value, range, help);
}

Flag Command::add_number(const std::string& names, std::optional<double>& value, Decimals range,
                         const std::string& help) {
  return add_ranged(*this, names, value, range, help);
}

Flag Command::add_choice(const std::string& names, std::string& value, const std::vector<std::string_view>& words,
                         const std::string& help) {
  const std::string flag = long_name_of(names);
  Flag added = add_option(names, [&value, flag, words](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) == words.end()) {
      refuse(fmt::format("{}: '{}' is not one of {}", flag, text, fmt::join(words, ", ")));
    }
    value = text;
  });
  const auto is_named = [&](std::string_view word) { return help.find(word) != std::string::npos; };
  const bool are_named = std::all_of(words.begin(), words.end(), is_named);
  added.type_name("WORD").choices(words).description(are_named ? help : fmt::format("{}: {}", help, one_of(words)));
  return value.empty() ? added : added.default_value(value);
}

void Command::allow_extras() { app_->allow_extras(); }

void Command::require_at_most_one() { app_->require_subcommand(0, 1); }

void Command::fallthrough() { app_->fallthrough(); }

void Command::before_parsing(std::function<void()> act) {
  app_->preparse_callback([act = std::move(act)](std::size_t) { act(); });
}

const std::string& Command::name() const { return app_->get_name(); }

std::string Command::description() const { return app_->get_description(); }

std::vector<Flag> Command::options() const {
  std::vector<Flag> flags;
  for (CLI::Option* const option : app_->get_options()) flags.push_back(flag_of(option));
  return flags;
}

bool Command::has_option(const std::string& name) const { return app_->get_option_no_throw(name) != nullptr; }

bool Command::has_subcommands() const { return !app_->get_subcommands({}).empty(); }

bool Command::is_chosen() const { return app_->parsed(); }

std::vector<Command> Command::chosen_subcommands() const {
  std::vector<Command> commands;
  for (CLI::App* const app : app_->get_subcommands()) commands.emplace_back(app, values_);
  return commands;
}

bool Command::is_given(const std::string& flag) const { return app_->count(flag) > 0; }

std::vector<std::string> Command::remaining() const { return app_->remaining(true); }

Parser::Parser(const std::string& name, const std::string& help_names) : app_(std::make_unique<CLI::App>()) {
  app_->name(name);
  app_->set_help_flag(help_names, "show this help");
}

Parser::~Parser() = default;

Command Parser::program() { return {app_.get(), values_}; }

bool Parser::parse(const std::vector<std::string>& words) {
  try {
    // CLI11 takes them from the back
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    refuse(plain_words(error));
  }
  return true;
}

}  // namespace posenc::cli
