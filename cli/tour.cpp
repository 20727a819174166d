#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cli/streams.h"
#include "cli/table_text.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "posenc/apply.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t kFarPosition = 1'000'003;
constexpr std::int64_t kWidth = 512;

std::string small_table(bool colour) {
  TableJob job;
  const Sinusoidal scheme{.width = 4};
  job.scheme = scheme;
  job.form = prepare(scheme);
  job.positions.count = 4;
  return table_text(job, 3, output_columns(), colour);
}

std::vector<float> row_at(std::int64_t position, Numerics numerics) {
  std::vector<float> row(kWidth);
  Situation now;
  now.numerics = numerics;
  tabulate(view(row.data(), {1, kWidth}), {.first = position}, prepare(Sinusoidal{.width = kWidth}, now));
  return row;
}

// The same numbers by a way that shares nothing with ours: the C library in its widest type, rounded once.
std::vector<float> witness_at(std::int64_t position) {
  std::vector<float> row;
  for (std::int64_t pair = 0; pair < kWidth / 2; ++pair) {
    const long double exponent = -2.0L * static_cast<long double>(pair) / static_cast<long double>(kWidth);
    const long double angle = static_cast<long double>(position) * std::pow(10000.0L, exponent);
    row.push_back(static_cast<float>(std::sin(angle)));
    row.push_back(static_cast<float>(std::cos(angle)));
  }
  return row;
}

struct Agreement {
  std::size_t equal = 0;
  std::size_t worst = 0;
  double largest_error = 0;
};

Agreement compare(const std::vector<float>& values, const std::vector<float>& truth) {
  Agreement result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == truth[i]) ++result.equal;
    const double error = std::fabs(static_cast<double>(values[i]) - static_cast<double>(truth[i]));
    if (error <= result.largest_error) continue;
    result.largest_error = error;
    result.worst = i;
  }
  return result;
}

std::string proof() {
  const std::vector<float> truth = witness_at(kFarPosition);
  const std::vector<float> ours = row_at(kFarPosition, Numerics::kExact);
  const std::vector<float> usual = row_at(kFarPosition, Numerics::kHfF32);
  const Agreement our = compare(ours, truth);
  const Agreement their = compare(usual, truth);
  const std::size_t column = their.worst;

  const auto line = [](std::string_view who, std::string_view value, std::string_view right, std::string_view error) {
    return fmt::format("  {}  {:>12}  {:>17}  {:>13}\n", pad_right(who, 26), value, right, error);
  };
  const auto measured = [&](std::string_view who, const std::vector<float>& values, const Agreement& agreement) {
    return line(who, fmt::format("{:.9f}", values[column]), fmt::format("{} of {}", agreement.equal, truth.size()),
                fmt::format("{:.2g}", agreement.largest_error));
  };
  return line("", fmt::format("column {}", column), "correctly rounded", "largest error") +
         measured("posenc", ours, our) + measured("angle in float32, as usual", usual, their) +
         line("C library, long double", fmt::format("{:.9f}", truth[column]), "the witness", "-");
}

int run() {
  const bool colour = wants_colour(STDOUT_FILENO);
  std::string text;
  const auto heading = [&](std::string_view words) { text += bold(words, colour) + "\n"; };
  heading("1. Word order, as numbers");
  text +=
      "Attention alone sees a bag of words: \"dog bites man\" and \"man bites dog\" are one to it.\n"
      "So the vector of each word gets the numbers of its position added. For 4 features:\n\n";
  text += small_table(colour) + "\n";
  heading("2. Exact, however far");
  text += fmt::format("Position 1,000,003 with {} features, computed just now in three ways:\n\n", kWidth);
  text += proof();
  text += "\n";
  heading("3. Where to go next");
  text +=
      "  posenc list                                            every scheme\n"
      "  posenc table sinusoidal --help                         its fields, and how to write a table\n"
      "  posenc table sinusoidal --positions 0:4096 -o pe.npy   a table for NumPy or PyTorch\n"
      "  posenc apply sinusoidal x.npy -o y.npy                 added to your own vectors\n"
      "  posenc bench                                           how fast this machine does it\n";
  print(text);
  return 0;
}

}  // namespace

Verb tour_verb(CLI::App& program) {
  Verb verb;
  verb.name = "tour";
  verb.summary = "start here: position as numbers, a proof that they are exact, where to go next";
  verb.examples = "posenc tour";
  verb.command = program.add_subcommand(std::string(verb.name));
  verb.run = [verb] {
    refuse_leftovers(*verb.command);
    return run();
  };
  return verb;
}

}  // namespace posenc::cli
