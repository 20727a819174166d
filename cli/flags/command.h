#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Only command.cpp includes CLI11. It is header-only, so every file that includes it compiles all of it again: five
// seconds each, for seventy files.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace posenc::cli {

/// The values that a flag accepts: from least to most, inclusive.
struct Integers {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
struct Decimals {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool without_least = false;  // exclusive
};

/// What a flag accepts, as text: for the help, completions and other uses.
struct FlagValues {
  std::string default_value = {};  // "": none, or it depends on other flags
  std::string least = {}, most = {};
  std::vector<std::string> choices = {};
};
using FlagValuesByOption = std::map<const CLI::Option*, FlagValues>;

/// A flag or an argument of a command. Copies refer to the same flag.
class Flag {
 public:
  Flag(CLI::Option* option, std::shared_ptr<FlagValuesByOption> all) : option_(option), all_(std::move(all)) {}

  /// The placeholder of the value in the help: --digits N.
  Flag type_name(const std::string& name);
  Flag group(std::string_view name);
  Flag description(const std::string& text);
  /// Set as soon as it is read, not after all words are.
  Flag trigger_on_parse();
  Flag values(FlagValues values);
  /// The words that it accepts, if the verb itself rejects others.
  Flag choices(const std::vector<std::string_view>& words);
  /// The value if it is not given; shown in the help.
  Flag default_value(const std::string& text);

  [[nodiscard]] const std::vector<std::string>& long_names() const;
  [[nodiscard]] const std::vector<std::string>& short_names() const;
  [[nodiscard]] const std::string& description() const;
  [[nodiscard]] const std::string& group() const;
  /// "--digits N", without the N if it takes no value.
  [[nodiscard]] std::string spelled() const;
  [[nodiscard]] bool is_given() const;
  [[nodiscard]] bool takes_value() const;
  /// "N", as in the help; for an argument, its name.
  [[nodiscard]] std::string metavar() const;
  [[nodiscard]] FlagValues values() const;

 private:
  CLI::Option* option_;
  std::shared_ptr<FlagValuesByOption> all_;
};

/// The program, a verb, or a scheme of a verb: what may follow it on the command line. Copies refer to the same
/// command; the Parser owns it.
class Command {
 public:
  Command() = default;
  Command(CLI::App* app, std::shared_ptr<FlagValuesByOption> values) : app_(app), values_(std::move(values)) {}

  Command add_subcommand(std::string_view name, std::string_view description = "");
  /// `names` are "--digits", "-o,--output", or "PATH" for an argument. The value must live until parsing is complete.
  Flag add_option(const std::string& names, std::string& value, const std::string& help = "");
  Flag add_option(const std::string& names, std::optional<std::string>& value, const std::string& help = "");
  Flag add_option(const std::string& names, std::vector<std::string>& values, const std::string& help = "");
  Flag add_option(const std::string& names, const std::function<void(const std::string&)>& set);
  Flag add_flag(const std::string& names, bool& value, const std::string& help = "");

  // Flags with declared values: the default is the variable's current value. The help and the error message for other
  // values follow from the declaration.
  Flag add_integer(const std::string& names, std::int64_t& value, Integers range, const std::string& help);
  Flag add_integer(const std::string& names, std::optional<std::int64_t>& value, Integers range,
                   const std::string& help);
  Flag add_number(const std::string& names, double& value, Decimals range, const std::string& help);
  Flag add_number(const std::string& names, std::optional<double>& value, Decimals range, const std::string& help);
  /// One of these words; the help lists them unless `help` contains them all. Empty if it is not given and has no
  /// default.
  Flag add_choice(const std::string& names, std::string& value, const std::vector<std::string_view>& words,
                  const std::string& help);

  /// Leaves unknown words to remaining() instead of rejecting them.
  void allow_extras();
  /// At most one of its subcommands.
  void require_at_most_one();
  /// Looks up unknown flags in the parent command.
  void fallthrough();
  /// Called when its name is read, before any of its flags.
  void before_parsing(std::function<void()> act);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::string description() const;
  /// Its own flags and arguments, in the order in which they were added.
  [[nodiscard]] std::vector<Flag> options() const;
  [[nodiscard]] bool has_option(const std::string& name) const;
  [[nodiscard]] bool has_subcommands() const;

  /// After parsing: whether it was used, its subcommands that were, whether a flag was given, and the unknown words.
  [[nodiscard]] bool is_chosen() const;
  [[nodiscard]] std::vector<Command> chosen_subcommands() const;
  [[nodiscard]] bool is_given(const std::string& flag) const;
  [[nodiscard]] std::vector<std::string> remaining() const;

 private:
  Flag flag_of(CLI::Option* option) const { return {option, values_}; }

  CLI::App* app_ = nullptr;
  std::shared_ptr<FlagValuesByOption> values_;
};

/// Parses the words of a command line.
class Parser {
 public:
  /// `help_names` as "-h,--help"; empty: no such flag.
  Parser(const std::string& name, const std::string& help_names);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  [[nodiscard]] Command program();
  /// Returns false if help is requested. Throws: Failure for words that cannot be parsed.
  bool parse(const std::vector<std::string>& words);

 private:
  std::unique_ptr<CLI::App> app_;
  std::shared_ptr<FlagValuesByOption> values_ = std::make_shared<FlagValuesByOption>();
};

}  // namespace posenc::cli
