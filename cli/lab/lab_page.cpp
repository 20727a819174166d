#include "cli/lab/lab_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/pages/html.h"
#include "lab/products.h"
#include "posenc/content.h"
#include "posenc/version.h"

namespace posenc::cli {
namespace {

std::string_view class_of(lab::Answer answer) {
  return answer == lab::Answer::kReproduced ? "yes" : answer == lab::Answer::kRefuted ? "no" : "open";
}

// A number line: the claim's side shaded, the threshold, the interval and the mean.
std::string interval_picture(const lab::Verdict& verdict) {
  const lab::Claim& claim = *verdict.claim;
  const lab::Estimate& estimate = verdict.estimate;
  const double left_limit = claim.side == lab::Side::kWithin ? -claim.threshold : claim.threshold;
  double least = std::min(left_limit, estimate.low), most = std::max(claim.threshold, estimate.high);
  if (!(most - least > 1e-9)) most = least + 1;
  const double margin = 0.18 * (most - least);
  least -= margin;
  most += margin;
  const auto x = [&](double value) { return 10 + 252 * (value - least) / (most - least); };
  const double from = claim.side == lab::Side::kAtMost ? least : left_limit;
  const double to = claim.side == lab::Side::kAtLeast ? most : claim.threshold;
  std::string text = fmt::format(
      "<svg viewBox=\"0 0 272 54\" role=\"img\" aria-label=\"threshold {}, measured {}\">"
      "<rect x=\"{:.1f}\" y=\"12\" width=\"{:.1f}\" height=\"22\" fill=\"var(--good)\" opacity=\"0.16\"/>"
      "<line x1=\"10\" x2=\"262\" y1=\"34\" y2=\"34\" stroke=\"var(--line)\"/>",
      escaped_html(lab::threshold_text(claim)), escaped_html(shown_estimate(verdict)), x(from),
      std::max(0.0, x(to) - x(from)));
  for (const double edge : {left_limit, claim.threshold}) {
    text += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"8\" y2=\"38\" stroke=\"var(--ink)\" stroke-dasharray=\"3 2\"/>",
        x(edge));
  }
  text += fmt::format(
      "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"23\" y2=\"23\" stroke=\"var(--accent)\" stroke-width=\"3\"/>"
      "<circle cx=\"{:.1f}\" cy=\"23\" r=\"5\" fill=\"var(--accent)\"/>",
      x(estimate.low), x(estimate.high), x(estimate.mean));
  const bool right = x(claim.threshold) > 200;
  text += fmt::format("<text x=\"{:.1f}\" y=\"50\" text-anchor=\"{}\">threshold {}</text>",
                      std::clamp(x(claim.threshold), 34.0, 262.0),
                      right                     ? "end"
                      : x(claim.threshold) < 60 ? "start"
                                                : "middle",
                      escaped_html(lab::threshold_text(claim)));
  return text + "</svg>";
}

std::string claim_html(const lab::Verdict& verdict) {
  const lab::Claim& claim = *verdict.claim;
  std::string text =
      fmt::format("<div class=\"claim\" id=\"{}\"><div><h3>{}</h3>\n", claim.id, escaped_html(claim.text));
  text += fmt::format("<p class=\"small\">Published: {} ({}).</p>\n", escaped_html(claim.published),
                      escaped_html(claim.source));
  if (!verdict.values.empty()) {
    text += fmt::format("<p>Here: <strong>{}{}{}</strong> ({}), the {}.</p>\n", escaped_html(shown_estimate(verdict)),
                        claim.unit.empty() || claim.unit == "ratio" ? "" : " ",
                        claim.unit == "ratio" ? "" : escaped_html(claim.unit), lab::interval_text(verdict),
                        escaped_html(claim.measure));
  }
  if (!verdict.reason.empty())
    text += fmt::format("<p class=\"small\">{}{}.</p>\n",
                        static_cast<char>(std::toupper(static_cast<unsigned char>(verdict.reason[0]))),
                        escaped_html(verdict.reason.substr(1)));
  text += fmt::format("</div><div><span class=\"chip {}\">{}</span>\n", class_of(verdict.answer),
                      lab::name_of(verdict.answer));
  if (verdict.values.size() > 1) text += interval_picture(verdict);
  return text + "</div></div>\n";
}

std::string results_table(const std::vector<LabRow>& rows, std::string_view task) {
  std::vector<const LabRow*> chosen;
  std::vector<std::int64_t> sizes;
  for (const LabRow& row : rows) {
    if (row.task != task) continue;
    chosen.push_back(&row);
    for (const std::int64_t size : row.sizes) {
      if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
    }
  }
  if (chosen.empty()) return "";
  std::sort(sizes.begin(), sizes.end());
  std::string text = fmt::format(
      "<div class=\"wide\"><table class=\"key\"><caption>{}: {}</caption><thead><tr><th>scheme</th><th>seeds</th>"
      "<th>parameters</th>",
      escaped_html(task), chosen.front()->is_exact ? "exact match, %, by size" : "perplexity by length");
  for (const std::int64_t size : sizes) text += fmt::format("<th>{}</th>", size);
  text += "</tr></thead><tbody>\n";
  for (const LabRow* const row : chosen) {
    text += fmt::format("<tr><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td>", escaped_html(row->scheme),
                        row->extension == "none" ? "" : " with " + row->extension, row->seeds,
                        figures::grouped(static_cast<double>(row->parameters)));
    for (const std::int64_t size : sizes) {
      const auto found = std::find(row->sizes.begin(), row->sizes.end(), size);
      if (found == row->sizes.end()) {
        text += "<td></td>";
        continue;
      }
      const std::size_t i = found - row->sizes.begin();
      text += row->is_exact ? fmt::format("<td title=\"{:.0f} to {:.0f}\">{:.0f}</td>", 100 * row->least[i],
                                          100 * row->most[i], 100 * row->means[i])
                            : fmt::format("<td title=\"{:.2f} to {:.2f}\">{:.2f}</td>", row->least[i], row->most[i],
                                          row->means[i]);
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string settings_html(const LabPage& page) {
  std::string text =
      "<div class=\"wide\"><table class=\"key\"><thead><tr><th>task</th><th>size</th><th>layers</th><th>heads</th>"
      "<th>width</th><th>batch</th><th>steps</th><th>learning rate</th></tr></thead><tbody>\n";
  std::vector<std::string> seen;
  for (const lab::Outcome& outcome : page.outcomes) {
    const lab::Job& job = outcome.job;
    const std::string row = fmt::format(
        "<tr><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escaped_html(job.task), job.parent.empty() ? "" : ", fine-tuning", job.size, job.shape.layers,
        job.shape.heads, job.shape.width, job.batch, job.steps, job.learning_rate);
    if (std::find(seen.begin(), seen.end(), row) != seen.end()) continue;
    seen.push_back(row);
    text += row;
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace

std::string shown_estimate(const lab::Verdict& verdict) {
  const lab::Estimate& estimate = verdict.estimate;
  if (verdict.values.empty()) return "";
  if (verdict.values.size() == 1) return fmt::format("{:.3f}", estimate.mean);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", estimate.mean, estimate.low, estimate.high);
}

std::string lab_page(const LabPage& page) {
  double seconds = 0;
  for (const lab::Outcome& outcome : page.outcomes) seconds += outcome.seconds;
  const std::string title = "Which positional encodings extrapolate?";
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"posenc lab\">\n<title>{0}</title>\n<style>\n{1}\n{2}</style>\n</head>\n<body>\n"
      "<header><h1>{0}</h1>\n<p class=\"summary\">{3} of {4} small Transformers were trained on this machine in {5:.0f} "
      "seconds, on {6}, with the library's own attention. Published claims are judged by what came out.</p>\n",
      title, content("pages/report.css"), content("pages/lab.css"), page.outcomes.size(), page.run.jobs.size(),
      seconds, escaped_html(page.run.text_name));
  text += "<div class=\"tiles\">\n";
  for (const lab::Answer answer :
       {lab::Answer::kReproduced, lab::Answer::kRefuted, lab::Answer::kUndecided, lab::Answer::kNotTestable}) {
    const auto count = std::count_if(page.verdicts.begin(), page.verdicts.end(),
                                     [&](const lab::Verdict& verdict) { return verdict.answer == answer; });
    text += fmt::format("<div class=\"tile\"><b class=\"{}\">{}</b><span>{}</span></div>\n", class_of(answer), count,
                        lab::name_of(answer));
  }
  text +=
      "</div></header>\n<section id=\"verdicts\"><h2>1. Published claims, and what came out</h2>\n"
      "<div class=\"prose\"><p>A claim is reproduced where the whole interval of the measure is on the shaded side of its "
      "threshold, refuted where it is on the other, else undecided. With five seeds or more it is Student's 95% interval; "
      "fewer decide only if the nearest is farther from the threshold than they are from each other. Values of one seed "
      "are compared with each other: all schemes begin with the same weights and see the same batches.</p></div>\n";
  for (const lab::Answer answer : {lab::Answer::kReproduced, lab::Answer::kRefuted, lab::Answer::kUndecided}) {
    for (const lab::Verdict& verdict : page.verdicts) {
      if (verdict.answer == answer) text += claim_html(verdict);
    }
  }
  text += "</section>\n<section id=\"figures\"><h2>2. Figures</h2>\n";
  for (std::size_t i = 0; i < page.svgs.size(); ++i) {
    text += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", page.svgs[i],
                        escaped_html(page.figures[i].caption));
  }
  if (page.svgs.empty()) text += "<p>gnuplot is not installed, so there are no figures.</p>\n";
  text += "</section>\n<section id=\"results\"><h2>3. Results</h2>\n";
  const std::vector<LabRow> rows = lab_rows(page.outcomes);
  std::vector<std::string> tasks;
  for (const LabRow& row : rows) {
    if (std::find(tasks.begin(), tasks.end(), row.task) == tasks.end()) tasks.push_back(row.task);
  }
  for (const std::string& task : tasks) text += results_table(rows, task);
  text += "</section>\n<section id=\"settings\"><h2>4. Settings and limits</h2>\n" + settings_html(page);
  text +=
      "<div class=\"prose\"><p>Pre-norm Transformers with GELU and tied embeddings; AdamW; the learning rate warms up and "
      "falls along a cosine. Lengths are bytes, not words: a trained length of 32 bytes is about six words.</p>"
      "<p>Rows of a learned table past the trained length were never trained. Sinusoids begin as large as embeddings "
      "(root mean square 0.02). T5's last bucket begins at 32 bytes, so that it was trained. FIRE's c and threshold are "
      "fixed. KERPLE's and T5's numbers are shared by all layers.</p></div></section>\n"
      "<section id=\"open\"><h2>5. Claims that this run cannot test</h2>\n";
  for (const lab::Verdict& verdict : page.verdicts) {
    if (verdict.answer == lab::Answer::kNotTestable) text += claim_html(verdict);
  }
  text += fmt::format("</section>\n<footer>posenc {} · products by {} · {}</footer>\n</body>\n</html>\n",
                      POSENC_VERSION, escaped_html(lab::products_by()),
                      page.run.preset.empty() ? "posenc lab train" : "posenc lab run " + page.run.preset);
  return text;
}

}  // namespace posenc::cli
