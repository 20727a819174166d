#include "cli/flags/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

// CLI11's own words, where they can be said more plainly.
std::string plain_words(const CLI::ParseError& error) {
  std::string text = error.what();
  const std::string option = text.substr(0, text.find(':'));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return text.find("missing") != std::string::npos ? fmt::format("{} needs a value", option)
                                                     : fmt::format("{} is given more than once", option);
  }
  return text;
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

Command Command::add_subcommand(std::string_view name, std::string_view description) {
  return Command(app_->add_subcommand(std::string(name), std::string(description)));
}

Flag Command::add_option(const std::string& names, std::string& value, const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}

Flag Command::add_option(const std::string& names, std::optional<std::string>& value, const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}

Flag Command::add_option(const std::string& names, std::vector<std::string>& values, const std::string& help) {
  return Flag(app_->add_option(names, values, help));
}

Flag Command::add_option(const std::string& names, const std::function<void(const std::string&)>& set) {
  return Flag(app_->add_option_function<std::string>(names, set));
}

Flag Command::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Flag(app_->add_flag(names, value, help));
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
  for (CLI::Option* const option : app_->get_options()) flags.emplace_back(option);
  return flags;
}

bool Command::has_option(const std::string& name) const { return app_->get_option_no_throw(name) != nullptr; }

bool Command::has_subcommands() const { return !app_->get_subcommands({}).empty(); }

bool Command::is_chosen() const { return app_->parsed(); }

std::vector<Command> Command::chosen_subcommands() const {
  std::vector<Command> commands;
  for (CLI::App* const app : app_->get_subcommands()) commands.emplace_back(app);
  return commands;
}

bool Command::is_given(const std::string& flag) const { return app_->count(flag) > 0; }

std::vector<std::string> Command::remaining() const { return app_->remaining(true); }

Parser::Parser(const std::string& name, const std::string& help_names) : app_(std::make_unique<CLI::App>()) {
  app_->name(name);
  app_->set_help_flag(help_names, "this text");
}

Parser::~Parser() = default;

Command Parser::program() { return Command(app_.get()); }

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
