#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "cli/pages/report.h"
#include "cli/pages/tour_sections.h"
#include "cli/system/descriptor.h"
#include "cli/system/failure.h"
#include "cli/system/output_file.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/verbs.h"
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

// The steps of a story from one heading to another, each with its own text; they are collapsed on the page.
std::vector<StoryStep> steps_of(const Story& story, std::size_t from, std::size_t to) {
  std::vector<StoryStep> steps;
  for (std::size_t i = from; i < std::min(to, story.steps.size()); ++i) {
    // the errata of all stories are one table at the end
    const bool is_errata =
        std::any_of(story.steps[i].blocks.begin(), story.steps[i].blocks.end(),
                    [](const StoryBlock& block) { return std::holds_alternative<StoryErrata>(block); });
    if (!is_errata) steps.push_back(story.steps[i]);
  }
  return steps;
}

std::vector<std::string> shown_row(std::string label, const StoryMatrix& matrix, std::string_view row) {
  const auto found = std::find(matrix.rows.begin(), matrix.rows.end(), row);
  if (found == matrix.rows.end()) raise(fmt::format("tour: {} has no row {}", matrix.name, row));
  const std::size_t index = found - matrix.rows.begin();
  std::vector<std::string> cells = {std::move(label)};
  for (std::size_t i = 0; i < matrix.columns.size(); ++i) {
    cells.push_back(shown_number(matrix.at(index, i), matrix.digits));
  }
  return cells;
}

// The output of attention for one word in two sentences.
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
  section.heading = "Without position, attention cannot tell order";
  section.text =
      "Attention compares every word with every word, regardless of where they occur. Each word gets the same output "
      "in both sentences:";
  section.table = two_outputs(story, "", "dog");
  section.closing =
      fmt::format("Permutation-equivariant: the outputs differ by {:.2g} (with a causal mask, by {:.2f}).",
                  residual_of(story, 0), residual_of(story, 1));
  section.prose = {
      "Attention compares every word with every word: the score of two words is a dot product of their vectors, "
      "regardless of where they occur. The output of a word is a weighted mean over all words, and a mean does not "
      "depend on the order of its terms.",
      "So each word gets the same output in \"dog bites man\" and in \"man bites dog\". Reorder the input, and the output "
      "rows are reordered the same way. Nothing else changes."};
  section.steps = steps_of(story, 0, 4);
  section.steps_command = "posenc explain dog-bites-man";
  return section;
}

ReportSection found_section(const Story& story) {
  ReportSection section;
  section.heading = "With position added, outputs depend on order";
  section.text = "Add the sines and cosines of its position to each word, and the outputs now differ:";
  section.table = two_outputs(story, "'", "dog");
  section.closing = fmt::format("Permuting the words now changes outputs by up to {:.2f}.", residual_of(story, 2));
  section.prose = {
      "The remedy is to make the position part of the input: add to each word a vector that depends only on where it "
      "occurs. The original Transformer uses sines and cosines of the position, at frequencies from fast to slow.",
      "The same word now enters attention as a different vector at every position, and its outputs in the two "
      "sentences differ."};
  section.steps = steps_of(story, 4, story.steps.size());
  section.steps_command = "posenc explain dog-bites-man";
  return section;
}

ReportSection frank_section(const Story& story) {
  ReportSection section;
  section.heading = "Two identical people become distinguishable";
  section.text = "Frank and Alex have the same profile and sit in the first and last seat. Their distance:";
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
  section.prose = {
      "Four people choose a restaurant: Frank, Emma, Daniel and Alex, in this order. Frank and Alex have exactly the "
      "same preferences. Without position their queries, keys, values and outputs are identical.",
      "Add a position vector to each row, and Frank and Alex differ at every stage from the input to the output. The "
      "table shows the distance between them; each step can be unfolded below."};
  section.steps = steps_of(story, 0, story.steps.size());
  section.steps_command = "posenc explain frank-and-alex";
  return section;
}

// Every number that differs from the texts that the worked examples follow.
ReportSection errata_section(const std::vector<Story>& stories) {
  ReportSection section;
  section.heading = "Errata";
  section.only_on_page = true;
  section.prose = {
      "The worked examples follow published articles and course notes on positional encoding. Every number here is "
      "computed; these differ there. Most differ in the last digit, because intermediate results were rounded."};
  section.page_table.header = {"story", "number", "correct", "printed"};
  for (const Story& story : stories) {
    for (const StoryStep& step : story.steps) {
      for (const StoryBlock& block : step.blocks) {
        const auto* const errata = std::get_if<StoryErrata>(&block);
        if (errata == nullptr) continue;
        for (const Misprint& misprint : errata->misprints) {
          section.page_table.rows.push_back(
              {story.name, misprint_place(misprint), correct_number(misprint), misprint.printed});
        }
      }
    }
  }
  return section;
}

ReportSection next_section() {
  ReportSection section;
  section.heading = "Where to go next";
  section.commands = {{"posenc explain", "worked examples, cell by cell"},
                      {"posenc prove", "test the claims about every scheme"},
                      {"posenc plot waves", "draw a figure; also SVG, PNG, PDF"},
                      {"posenc practice", "questions and exercises, graded"},
                      {"posenc list", "list every scheme"},
                      {"posenc table rope --dims 8 --positions 0:4", "print the values of one"},
                      {"posenc explore", "play with all this in a browser"},
                      {"posenc inspect config.json", "show how a model encodes position"}};
  return section;
}

// Sections in order; a new one is a line here.
Report make_report() {
  Report report;
  report.title = "How a Transformer knows word order";
  report.summary =
      "Attention by itself cannot tell \"dog bites man\" from \"man bites dog\". This page shows why, and how positional "
      "encodings change that. Every number on it was computed by posenc when the page was written.";
  const Story dog = tell_story("dog-bites-man"), frank = tell_story("frank-and-alex");
  report.sections = {lost_section(dog),    found_section(dog),
                     frank_section(frank), properties_section(),
                     exactness_section(),  speed_section(),
                     next_section(),       errata_section({tell_story("cat-sat"), frank, tell_story("shift")})};
  report.sections[1].figures = tour_figures({"waves", "heatmap", "fingerprint"});
  report.sections[3].figures = tour_figures({"dots", "decay"});
  report.sections[4].figures = tour_figures({"error"});
  return report;
}

// Whether the file is a page of an earlier tour: its mark is among the first bytes.
bool is_own_page(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 1024> bytes{};
  const ssize_t count = file.is_open() ? read(file.number(), bytes.data(), bytes.size()) : 0;
  return count > 0 && std::string_view(bytes.data(), count).find(kReportMark) != std::string_view::npos;
}

// The folder of the page. If it was created here and no page is written, it is removed again.
class PageFolder {
 public:
  explicit PageFolder(const std::string& path) : path_(path) {
    if (path.empty() || path == "-") refuse("-o: the tour needs a folder name");
    is_new_ = mkdir(path.c_str(), 0777) == 0;
    if (is_new_) return;
    const int error = errno;
    struct stat status {};
    if (error != EEXIST) fail_with_errno(path, error);
    if (stat(path.c_str(), &status) != 0) fail_with_errno(path, errno);
    if (!S_ISDIR(status.st_mode)) refuse(fmt::format("{} is not a folder", path));
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
        "{} exists and was not written by an earlier tour (use --force to overwrite it, or -o for another folder)",
        path));
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
        fmt::format("\nIllustrated page with all tables{}: {}\n", has_figures ? " and figures" : "", path));
  if (!has_figures)
    tell("gnuplot is not installed, so the page has no figures (Debian: apt-get install gnuplot-nox)");
  return kDone;
}

}  // namespace

Verb tour_verb(Command program) {
  Verb verb;
  verb.name = "tour";
  verb.summary = "start here: see how position works in one screen, and write an illustrated page";
  verb.usage = "[-o DIR] [--force]";
  verb.details =
      "Prints one screen: why attention cannot see word order by itself, how position restores it, which claimed "
      "properties hold, and how exact and fast posenc is on this machine. Writes the same, with all tables and "
      "figures, to DIR/index.html, a single self-contained page. A page written by an earlier tour is replaced; any "
      "other file is not.";
  verb.examples = "posenc tour\nposenc tour -o report";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<TourFlags>();
  verb.command.add_option("-o,--output", flags->folder, "folder of the report")
      .type_name("DIR")
      .default_value(flags->folder);
  verb.command.add_flag("--force", flags->force, "replace index.html there even if posenc did not write it");
  verb.run = [flags] { return run(*flags); };
  return verb;
}

}  // namespace posenc::cli
