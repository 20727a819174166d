#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// CLI11 is seen by command.cpp alone. Its header holds the whole of it, and each file that includes it compiles all
// of it again: five seconds, for seventy files.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace posenc::cli {

/// A flag or an argument of a command. Copies are the same flag.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  /// What stands for the value in the help: --digits N.
  Flag type_name(const std::string& name);
  Flag group(std::string_view name);
  Flag description(const std::string& text);
  /// Set where it stands among the words, not after all of them are read.
  Flag trigger_on_parse();

  [[nodiscard]] const std::vector<std::string>& long_names() const;
  [[nodiscard]] const std::vector<std::string>& short_names() const;
  [[nodiscard]] const std::string& description() const;
  [[nodiscard]] const std::string& group() const;
  /// "--digits N", without the N where it takes no value.
  [[nodiscard]] std::string spelled() const;
  [[nodiscard]] bool is_given() const;

 private:
  CLI::Option* option_;
};

/// The program, a verb, or a scheme of a verb: what may follow it on the command line. Copies are the same command;
/// the Parser owns it.
class Command {
 public:
  Command() = default;
  explicit Command(CLI::App* app) : app_(app) {}

  Command add_subcommand(std::string_view name, std::string_view description = "");
  /// `names` are "--digits", "-o,--output", or "PATH" for an argument. The value must live until all is parsed.
  Flag add_option(const std::string& names, std::string& value, const std::string& help = "");
  Flag add_option(const std::string& names, std::optional<std::string>& value, const std::string& help = "");
  Flag add_option(const std::string& names, std::vector<std::string>& values, const std::string& help = "");
  Flag add_option(const std::string& names, const std::function<void(const std::string&)>& set);
  Flag add_flag(const std::string& names, bool& value, const std::string& help = "");

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
  CLI::App* app_ = nullptr;
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
};

}  // namespace posenc::cli
