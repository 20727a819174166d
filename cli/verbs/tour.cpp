#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/pages/report.h"
#include "cli/pages/tour_exactness.h"
#include "cli/pages/tour_figures.h"
#include "cli/pages/tour_properties.h"
#include "cli/system/descriptor.h"
#include "cli/system/failure.h"
#include "cli/system/output_file.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/bench.h"
#include "cli/verbs/verbs.h"
#include "posenc/backend.h"
#include "posenc/error.h"
#include "posenc/story.h"

namespace posenc::cli {
namespace {

constexpr std::string_view kPage = "index.html";
constexpr int kPageColumns = 80;

struct TourFlags {
  std::string folder = "posenc-tour";
  bool force = false;
};

const StoryMatrix& matrix_of(const Story& story, std::string_view name) {
  const StoryMatrix* const found = find_matrix(story, name);
  if (found == nullptr) raise(fmt::format("tour: {} has no matrix {}", story.name, name));
  return *found;
}

// The matrices of these names, each with what is noted right behind it.
std::vector<StoryBlock> blocks_of(const Story& story, const std::vector<std::string_view>& names) {
  std::vector<StoryBlock> blocks;
  for (const StoryStep& step : story.steps) {
    bool was_wanted = false;
    for (const StoryBlock& block : step.blocks) {
      const auto* const matrix = std::get_if<StoryMatrix>(&block);
      const bool is_note = std::holds_alternative<StoryNote>(block);
      was_wanted = matrix != nullptr ? std::find(names.begin(), names.end(), matrix->name) != names.end()
                                     : was_wanted && is_note;
      if (was_wanted) blocks.push_back(block);
    }
  }
  return blocks;
}

std::vector<std::string> shown_row(std::string label, const StoryMatrix& matrix, std::string_view row) {
  const auto found = std::find(matrix.rows.begin(), matrix.rows.end(), row);
  if (found == matrix.rows.end()) raise(fmt::format("tour: {} has no row {}", matrix.name, row));
  const auto index = static_cast<std::size_t>(found - matrix.rows.begin());
  std::vector<std::string> cells = {std::move(label)};
  for (std::size_t i = 0; i < matrix.columns.size(); ++i) {
    cells.push_back(shown_number(matrix.at(index, i), matrix.digits));
  }
  return cells;
}

// What attention makes of one word in two sentences.
ReportTable two_outputs(const Story& story, std::string_view mark, std::string_view word) {
  ReportTable table;
  const StoryMatrix& first = matrix_of(story, fmt::format("O1{}", mark));
  const StoryMatrix& second = matrix_of(story, fmt::format("O2{}", mark));
  table.header = {fmt::format("\"{}\" in", word)};
  table.header.insert(table.header.end(), first.columns.begin(), first.columns.end());
  table.rows = {shown_row(fmt::format("{}", fmt::join(first.rows, " ")), first, word),
                shown_row(fmt::format("{}", fmt::join(second.rows, " ")), second, word)};
  return table;
}

double residual_of(const Story& story, std::size_t row) { return matrix_of(story, "R").at(row, 0); }

ReportSection lost_section(const Story& story) {
  ReportSection section;
  section.heading = "Word order, lost";
  section.text =
      "Attention compares every word with every word, wherever they stand. So each word of two sentences gets the "
      "same output in both:";
  section.table = two_outputs(story, "", "dog");
  section.closing =
      fmt::format("Shuffle in, shuffle out: they differ by {:.2g} (under a causal mask alone, by {:.2f}).",
                  residual_of(story, 0), residual_of(story, 1));
  section.details = blocks_of(story, {"X1", "X2", "S1", "S2", "A1", "A2", "O1", "O2", "A1m", "O1m", "A2m", "O2m"});
  return section;
}

ReportSection found_section(const Story& story) {
  ReportSection section;
  section.heading = "Found again";
  section.text = "Add the sines and cosines of its position to each word, and the two part:";
  section.table = two_outputs(story, "'", "dog");
  section.closing = fmt::format("Now shuffling changes outputs by up to {:.2f}.", residual_of(story, 2));
  section.details = blocks_of(story, {"X1'", "X2'", "S1'", "S2'", "A1'", "O1'", "A2'", "O2'"});
  return section;
}

ReportSection frank_section(const Story& story) {
  ReportSection section;
  section.heading = "Frank and Alex part";
  section.text = "Two people with the same profile, in the first seat and the last. How far apart they are:";
  const StoryMatrix& distances = matrix_of(story, "D");
  section.table.header = {""};
  section.table.header.insert(section.table.header.end(), distances.rows.begin(), distances.rows.end());
  for (std::size_t column = 0; column < distances.columns.size(); ++column) {
    std::vector<std::string> row = {column == 0 ? "without position" : "with position"};
    for (std::size_t i = 0; i < distances.rows.size(); ++i) {
      row.push_back(shown_number(distances.at(i, column), distances.digits));
    }
    section.table.rows.push_back(std::move(row));
  }
  section.details = blocks_of(story, {"X", "P", "X'", "Q'", "K'", "V'", "S'", "A'", "O'"});
  return section;
}

ReportSection speed_section() {
  // larger than the caches, and still done in a moment
  const BenchResult result = measure_table({32768, 1024}, DataType::kF32, {.repeats = 3, .seconds = 0.5});
  ReportSection section;
  section.heading = "Fast";
  section.text = fmt::format("Here, {:.1f} GB/s of such a table with {} thread{}; plain stores reach {:.1f}.",
                             result.gb_per_s(), threads(), threads() == 1 ? "" : "s", result.limit_gb_per_s());
  return section;
}

ReportSection next_section() {
  ReportSection section;
  section.heading = "Where to go next";
  section.commands = {{"posenc explain", "worked examples, cell by cell"},
                      {"posenc prove", "every statement on every scheme"},
                      {"posenc plot waves", "a figure, here or as SVG, PNG, PDF"},
                      {"posenc practice", "questions and exercises, graded"},
                      {"posenc list", "every scheme"},
                      {"posenc table rope --dims 8 --positions 0:4", "the numbers of one"},
                      {"posenc table rope --help", "its fields"},
                      {"posenc inspect config.json", "what a model's config means"},
                      {"posenc bench", "how fast this machine is"}};
  return section;
}

// Sections in the order in which they are told; a new one is a line here.
Report make_report() {
  Report report;
  report.title = "How a Transformer knows word order";
  report.summary = "Every number on this page was computed by posenc when it was written.";
  const Story dog = tell_story("dog-bites-man"), frank = tell_story("frank-and-alex");
  report.sections = {lost_section(dog),   found_section(dog), frank_section(frank), properties_section(),
                     exactness_section(), speed_section(),    next_section()};
  report.sections[1].figures = tour_figures({"waves", "heatmap", "fingerprint"});
  report.sections[3].figures = tour_figures({"dots", "decay"});
  report.sections[4].figures = tour_figures({"error"});
  return report;
}

// Whether what stands there is a page of an earlier tour: its mark is among the first bytes.
bool is_own_page(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 1024> bytes{};
  const ssize_t count = file.is_open() ? read(file.number(), bytes.data(), bytes.size()) : 0;
  return count > 0 &&
         std::string_view(bytes.data(), static_cast<std::size_t>(count)).find(kReportMark) != std::string_view::npos;
}

// The folder of the page. One that we made is taken away again where nothing comes to stand in it.
class PageFolder {
 public:
  explicit PageFolder(const std::string& path) : path_(path) {
    if (path.empty() || path == "-") refuse("-o: the tour needs the name of a folder");
    is_new_ = mkdir(path.c_str(), 0777) == 0;
    if (is_new_) return;
    const int error = errno;
    struct stat status {};
    if (error != EEXIST) fail_with_errno(path, error);
    if (stat(path.c_str(), &status) != 0) fail_with_errno(path, errno);
    if (!S_ISDIR(status.st_mode)) refuse(fmt::format("{}: is not a folder", path));
  }
  PageFolder(const PageFolder&) = delete;
  PageFolder& operator=(const PageFolder&) = delete;
  ~PageFolder() {
    if (is_new_) rmdir(path_.c_str());
  }
  void keep() { is_new_ = false; }

 private:
  std::string path_;
  bool is_new_ = false;
};

int run(const TourFlags& flags) {
  PageFolder folder(flags.folder);
  const std::string path = fmt::format("{}{}{}", flags.folder, flags.folder.ends_with('/') ? "" : "/", kPage);
  struct stat status {};
  const bool exists = lstat(path.c_str(), &status) == 0;
  if (exists && !flags.force && !is_own_page(path)) {
    refuse(fmt::format(
        "{}: exists and is not a page of an earlier tour (--force replaces it, -o names another folder)", path));
  }
  OutputFile page(output_target(path, exists));
  const Report report = make_report();
  page.write(report_html(report));
  page.publish();
  folder.keep();
  const int columns = std::min(output_columns(), kPageColumns);
  const bool has_figures = std::any_of(report.sections.begin(), report.sections.end(),
                                       [](const ReportSection& section) { return !section.figures.empty(); });
  print(report_text(report, columns, wants_colour(STDOUT_FILENO)) +
        fmt::format("\nThe same with tables{}, to read and print: {}\n", has_figures ? " and figures" : "", path));
  if (!has_figures)
    tell("gnuplot is not installed, so the page has no figures (Debian: apt-get install gnuplot-nox)");
  return kDone;
}

}  // namespace

Verb tour_verb(Command program) {
  Verb verb;
  verb.name = "tour";
  verb.summary = "start here: word order lost and found, in numbers; writes a report to read and print";
  verb.usage = "[-o DIR] [--force]";
  verb.details =
      "Tells the story in one screen: attention does not see word order, position brings it back, what is said of "
      "that holds or not, and how exact and how fast it is here. Writes the same with all its tables and figures to "
      "DIR/index.html, one file that needs no other. A page of an earlier tour is replaced without asking, any other "
      "file never.";
  verb.examples = "posenc tour\nposenc tour -o report";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<TourFlags>();
  verb.command.add_option("-o,--output", flags->folder, "folder of the report")
      .type_name("DIR")
      .default_value(flags->folder);
  verb.command.add_flag("--force", flags->force, "replaces an index.html there, whatever it is");
  verb.run = [flags, verb] {
    refuse_leftovers(verb.command);
    return run(*flags);
  };
  return verb;
}

}  // namespace posenc::cli
