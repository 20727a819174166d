#include "cli/lab/lab_report.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "cli/lab/lab_page.h"
#include "cli/plots/gnuplot.h"
#include "cli/plots/picture.h"
#include "cli/system/failure.h"
#include "cli/system/terminal.h"
#include "posenc/version.h"

namespace posenc::cli {
namespace {

Json json_of_row(const LabRow& row) {
  Json::Array sizes;
  for (std::size_t i = 0; i < row.sizes.size(); ++i) {
    sizes.push_back(
        Json::Object{{"size", row.sizes[i]}, {"mean", row.means[i]}, {"least", row.least[i]}, {"most", row.most[i]}});
  }
  return Json::Object{
      {"task", row.task},   {"scheme", row.scheme},         {"extension", row.extension},
      {"seeds", row.seeds}, {"parameters", row.parameters}, {"measure", row.is_exact ? "exact match" : "perplexity"},
      {"by_size", sizes}};
}

std::string summary_json(const LabRun& run, const std::vector<lab::Outcome>& outcomes,
                         const std::vector<lab::Verdict>& verdicts) {
  Json::Array judged, rows;
  for (const lab::Verdict& verdict : verdicts) judged.push_back(to_json(verdict));
  for (const LabRow& row : lab_rows(outcomes)) rows.push_back(json_of_row(row));
  const Json summary = Json::Object{{"format", "posenc-lab-summary-1"},
                                    {"posenc", POSENC_VERSION},
                                    {"preset", run.preset},
                                    {"text", run.text_name},
                                    {"models", static_cast<std::int64_t>(outcomes.size())},
                                    {"models_planned", static_cast<std::int64_t>(run.jobs.size())},
                                    {"verdicts", judged},
                                    {"results", rows}};
  return dump_json(summary, 2) + "\n";
}

std::string verdicts_text(const std::vector<lab::Verdict>& verdicts, int columns, bool colour) {
  std::string text;
  for (const lab::Answer answer : {lab::Answer::kReproduced, lab::Answer::kRefuted, lab::Answer::kUndecided}) {
    bool is_first = true;
    for (const lab::Verdict& verdict : verdicts) {
      if (verdict.answer != answer) continue;
      if (is_first) {
        std::string heading(lab::name_of(answer));
        heading[0] = static_cast<char>(heading[0] - 'a' + 'A');
        text += (text.empty() ? "" : "\n") + bold(heading, colour) + "\n";
      }
      is_first = false;
      const lab::Claim& claim = *verdict.claim;
      for (const std::string& line : wrap(fmt::format("{}", claim.text), columns - 2)) text += "  " + line + "\n";
      const std::string facts = fmt::format("{}: {}, {} (threshold {}){}", claim.measure, shown_estimate(verdict),
                                            lab::interval_text(verdict), lab::threshold_text(claim),
                                            verdict.reason.empty() ? "" : "; " + verdict.reason);
      for (const std::string& line : wrap(facts, columns - 4)) text += dim("    " + line, colour) + "\n";
    }
  }
  int open = 0;
  for (const lab::Verdict& verdict : verdicts) open += verdict.answer == lab::Answer::kNotTestable ? 1 : 0;
  if (open > 0) {
    text += fmt::format("{}{} further claim{} cannot be tested by this run; the report says why.\n",
                        text.empty() ? "" : "\n", open, open == 1 ? "" : "s");
  }
  return text;
}

}  // namespace

std::string write_lab_report(const LabFolder& folder, const LabRun& run, int columns, bool colour) {
  const std::vector<lab::Outcome> outcomes = folder.results(run);
  if (outcomes.empty()) refuse(fmt::format("{}: no model of this run is trained yet", folder.path("run.json")));
  const std::vector<lab::Verdict> verdicts = lab::judge(outcomes);
  const std::vector<LabFigure> figures = lab_figures(outcomes);
  LabPage page{run, outcomes, verdicts, figures, {}};
  if (!gnuplot_path().empty()) {
    const std::string drawings = folder.path("figures");
    if (mkdir(drawings.c_str(), 0777) != 0 && errno != EEXIST) fail_with_errno(drawings, errno);
    for (const LabFigure& figure : figures) {
      page.svgs.push_back(svg_of(figure.figure, figure.name));
      folder.write(fmt::format("figures/{}.svg", figure.name),
                   picture_of(figure.figure, PictureFormat::kSvg, figure.figure.width, figure.figure.height));
    }
  }
  folder.write("summary.json", summary_json(run, outcomes, verdicts));
  folder.write("report.html", lab_page(page));
  return verdicts_text(verdicts, columns, colour) +
         fmt::format("\nReport with figures: {}\n", folder.path("report.html"));
}

}  // namespace posenc::cli
