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

// CLI11 is seen by command.cpp alone. Its header holds the whole of it, and each file that includes it compiles all
// of it again: five seconds, for seventy files.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace posenc::cli {

/// The values that a flag takes: from least to most, both included.
struct Integers {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
struct Decimals {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool without_least = false;  // above it
};

/// What a flag takes, as text: for the help, completions and whoever else asks.
struct FlagValues {
  std::string default_value = {};  // "": it has none, or depends on other things
  std::string least = {}, most = {};
  std::vector<std::string> choices = {};
};
using FlagValuesByOption = std::map<const CLI::Option*, FlagValues>;

/// A flag or an argument of a command. Copies are the same flag.
class Flag {
 public:
  Flag(CLI::Option* option, std::shared_ptr<FlagValuesByOption> all) : option_(option), all_(std::move(all)) {}

  /// What stands for the value in the help: --digits N.
  Flag type_name(const std::string& name);
  Flag group(std::string_view name);
  Flag description(const std::string& text);
  /// Set where it stands among the words, not after all of them are read.
  Flag trigger_on_parse();
  Flag values(FlagValues values);
  /// Words that it takes, where the verb itself refuses others.
  Flag choices(const std::vector<std::string_view>& words);
  /// What it means where it is not given; the help says so.
  Flag default_value(const std::string& text);

  [[nodiscard]] const std::vector<std::string>& long_names() const;
  [[nodiscard]] const std::vector<std::string>& short_names() const;
  [[nodiscard]] const std::string& description() const;
  [[nodiscard]] const std::string& group() const;
  /// "--digits N", without the N where it takes no value.
  [[nodiscard]] std::string spelled() const;
  [[nodiscard]] bool is_given() const;
  [[nodiscard]] bool takes_value() const;
  /// "N", as the help has it; of an argument, its name.
  [[nodiscard]] std::string metavar() const;
  [[nodiscard]] FlagValues values() const;

 private:
  CLI::Option* option_;
  std::shared_ptr<FlagValuesByOption> all_;
};

/// The program, a verb, or a scheme of a verb: what may follow it on the command line. Copies are the same command;
/// the Parser owns it.
class Command {
 public:
  Command() = default;
  Command(CLI::App* app, std::shared_ptr<FlagValuesByOption> values) : app_(app), values_(std::move(values)) {}

  Command add_subcommand(std::string_view name, std::string_view description = "");
  /// `names` are "--digits", "-o,--output", or "PATH" for an argument. The value must live until all is parsed.
  Flag add_option(const std::string& names, std::string& value, const std::string& help = "");
  Flag add_option(const std::string& names, std::optional<std::string>& value, const std::string& help = "");
  Flag add_option(const std::string& names, std::vector<std::string>& values, const std::string& help = "");
  Flag add_option(const std::string& names, const std::function<void(const std::string&)>& set);
  Flag add_flag(const std::string& names, bool& value, const std::string& help = "");

  // Flags whose values are declared: the default is what the variable holds now. The help and the message for any other
  // value follow from the declaration.
  Flag add_integer(const std::string& names, std::int64_t& value, Integers range, const std::string& help);
  Flag add_integer(const std::string& names, std::optional<std::int64_t>& value, Integers range,
                   const std::string& help);
  Flag add_number(const std::string& names, double& value, Decimals range, const std::string& help);
  Flag add_number(const std::string& names, std::optional<double>& value, Decimals range, const std::string& help);
  /// One of these words; the help lists them unless `help` names them all. Empty where it is not given and has no
  /// default.
  Flag add_choice(const std::string& names, std::string& value, const std::vector<std::string_view>& words,
                  const std::string& help);

  /// Leaves words that nobody takes to remaining(), in place of refusing them.
  void allow_extras();
  /// No more than one of its subcommands.
  void require_at_most_one();
  /// Flags that it does not know are looked for in the command above it.
  void fallthrough();
  /// Called where its name is read, before any of its flags is.
  void before_parsing(std::function<void()> act);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::string description() const;
  /// Its own flags and arguments, in the order in which they were added.
  [[nodiscard]] std::vector<Flag> options() const;
  [[nodiscard]] bool has_option(const std::string& name) const;
  [[nodiscard]] bool has_subcommands() const;

  /// After parsing: whether it was named, its subcommands that were, whether a flag was, and what nobody took.
  [[nodiscard]] bool is_chosen() const;
  [[nodiscard]] std::vector<Command> chosen_subcommands() const;
  [[nodiscard]] bool is_given(const std::string& flag) const;
  [[nodiscard]] std::vector<std::string> remaining() const;

 private:
  Flag flag_of(CLI::Option* option) const { return {option, values_}; }

  CLI::App* app_ = nullptr;
  std::shared_ptr<FlagValuesByOption> values_;
};

/// Reads the words of a command line.
class Parser {
 public:
  /// `help_names` as "-h,--help"; empty: there is no such flag.
  Parser(const std::string& name, const std::string& help_names);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  [[nodiscard]] Command program();
  /// Returns false where help is asked for. Throws: Failure for words that cannot be read.
  bool parse(const std::vector<std::string>& words);

 private:
  std::unique_ptr<CLI::App> app_;
  std::shared_ptr<FlagValuesByOption> values_ = std::make_shared<FlagValuesByOption>();
};

}  // namespace posenc::cli
