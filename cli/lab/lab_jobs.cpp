#include "cli/lab/lab_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/lab/lab_progress.h"
#include "cli/system/failure.h"
#include "cli/system/signals.h"
#include "lab/presets.h"

namespace posenc::cli {
namespace {

// How much work an interruption may lose, at most.
constexpr std::chrono::seconds kBetweenCheckpoints{30};
constexpr std::int64_t kMetricsOfAJob = 200;

double mean_of_last(const std::vector<lab::Metric>& metrics) {
  const std::size_t count = std::max<std::size_t>(1, metrics.size() / 10);
  double sum = 0;
  for (std::size_t i = metrics.size() - std::min(count, metrics.size()); i < metrics.size(); ++i)
    sum += metrics[i].loss;
  return metrics.empty() ? 0 : sum / static_cast<double>(std::min(count, metrics.size()));
}

std::string result_line(const lab::Outcome& outcome) {
  const lab::Task& task = lab::task_named(outcome.job.task);
  std::string text = fmt::format("{}:", outcome.job.name);
  text += task.is_scored_exactly ? " exact match" : " perplexity";
  for (const lab::Score& score : outcome.scores) {
    if (score.extension != "none") continue;
    text += task.is_scored_exactly ? fmt::format("  {:.0f}% at {}", 100 * score.accuracy(), score.size)
                                   : fmt::format("  {:.2f} at {}", score.perplexity(), score.size);
  }
  return text;
}

class JobRunner {
 public:
  JobRunner(const LabFolder& folder, const lab::Text& text, const LabEffort& effort)
      : folder_(folder), text_(text), effort_(effort) {
    workers_.threads = effort.threads;
  }

  lab::Outcome run(const lab::Job& job, int number, LabProgress& progress) {
    lab::State state = folder_.state(job, text_);
    train(state, job, number, progress);
    lab::Outcome outcome;
    outcome.job = job;
    outcome.scores = lab::evaluate(state.network, job, text_, effort_.threads);
    outcome.parameters = lab::parameter_count(state.network.layout);
    outcome.loss = mean_of_last(state.metrics);
    for (const lab::Metric& metric : state.metrics) {
      outcome.seconds += static_cast<double>(job.batch * lab::task_named(job.task).length(job.size)) *
                         static_cast<double>(interval(job)) / metric.tokens_per_second;
    }
    folder_.finish(state, outcome, text_);
    return outcome;
  }

 private:
  static std::int64_t interval(const lab::Job& job) { return std::max<std::int64_t>(1, job.steps / kMetricsOfAJob); }

  void train(lab::State& state, const lab::Job& job, int number, LabProgress& progress) {
    const lab::Task& task = lab::task_named(job.task);
    const double work = lab::work_of(job) / static_cast<double>(std::max<std::int64_t>(1, job.steps));
    progress.skip(work * static_cast<double>(state.step));
    auto saved = std::chrono::steady_clock::now();
    while (state.step < job.steps) {
      lab::Metric metric;
      try {
        stop_if_signalled();
        metric = lab::train_step(state, job, task, text_, workers_);
      } catch (Failure& stop) {
        forget_signal();
        folder_.save(state, job, text_);
        stop.message = fmt::format("stopped after step {} of {}; continue with: posenc lab resume {}", state.step,
                                   job.name, folder_.path(""));
        while (stop.message.ends_with('/')) stop.message.pop_back();
        throw;
      }
      if (state.step % interval(job) == 0 || state.step == job.steps) state.metrics.push_back(metric);
      progress.step(job, number, metric, work);
      if (std::chrono::steady_clock::now() - saved > kBetweenCheckpoints) {
        folder_.save(state, job, text_);
        saved = std::chrono::steady_clock::now();
      }
    }
  }

  const LabFolder& folder_;
  const lab::Text& text_;
  LabEffort effort_;
  lab::Workers workers_;
};

}  // namespace

void run_jobs(const LabFolder& folder, const LabRun& run, const lab::Text& text, const LabEffort& effort) {
  double total = 0;
  for (const lab::Job& job : run.jobs) total += lab::work_of(job);
  LabProgress progress(total, static_cast<int>(run.jobs.size()), effort.quiet);
  JobRunner runner(folder, text, effort);
  int number = 0;
  for (const lab::Job& job : run.jobs) {
    ++number;
    if (folder.has_result(job)) {
      progress.skip(lab::work_of(job));
      continue;
    }
    const lab::Outcome outcome = runner.run(job, number, progress);
    if (!outcome.scores.empty()) progress.done(result_line(outcome));
  }
}

}  // namespace posenc::cli
