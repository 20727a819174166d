#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/lab/lab_folder.h"
#include "cli/lab/lab_jobs.h"
#include "cli/lab/lab_report.h"
#include "cli/system/failure.h"
#include "cli/system/output_file.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/verbs.h"
#include "lab/packed.h"
#include "lab/presets.h"
#include "posenc/backend.h"

namespace posenc::cli {
namespace {

constexpr int kReportColumns = 96;

struct LabFlags {
  std::string action, name, folder, text;
  lab::Job job;  // what train trains
  std::int64_t seed = 1;
  std::optional<std::int64_t> threads;
  bool force = false, quiet = false, is_long = false;
};

LabEffort effort_of(const LabFlags& flags) {
  LabEffort effort;
  effort.quiet = flags.quiet;
  effort.threads = flags.threads ? static_cast<int>(*flags.threads) : threads();
  return effort;
}

int finish_run(const LabFolder& folder, const LabRun& run, const lab::Text& text, const LabEffort& effort) {
  run_jobs(folder, run, text, effort);
  print(write_lab_report(folder, run, std::min(output_columns(), kReportColumns), wants_colour(STDOUT_FILENO)));
  return kDone;
}

LabRun run_of(const lab::Text& text, std::vector<lab::Job> jobs, std::string preset) {
  return {std::move(preset), text.name, lab::shown_fingerprint(text), std::move(jobs)};
}

// Rejects a run that would take an hour or more, so that nobody starts one by mistake; --long skips this check.
void refuse_long_run(const LabRun& run, const lab::Text& text, const LabEffort& effort) {
  constexpr double kHour = 3600;
  const double seconds = lab::estimated_seconds(run.jobs, text, effort.threads);
  if (seconds < kHour) return;
  refuse(fmt::format(
      "lab run {}: {} models would take about {:.0f} hours with {} thread{} of this machine; --long starts it anyway",
      run.preset, run.jobs.size(), std::max(1.0, seconds / kHour), effort.threads, effort.threads == 1 ? "" : "s"));
}

int run_preset(const LabFlags& flags) {
  if (flags.name.empty()) refuse("lab run: needs a preset (posenc lab list shows them)");
  const lab::Text text = read_corpus(flags.text);
  const LabRun run = run_of(text, lab::jobs_of(flags.name, text), flags.name);
  const LabFolder folder(flags.folder.empty() ? "lab-" + flags.name : flags.folder);
  const LabEffort effort = effort_of(flags);
  if (flags.name == "full" && !flags.is_long) refuse_long_run(run, text, effort);
  folder.begin(run, flags.force);
  return finish_run(folder, run, text, effort);
}

int resume_run(const LabFlags& flags) {
  if (flags.name.empty()) refuse("lab resume: needs the folder of a run");
  const LabFolder folder(flags.name);
  const LabRun run = folder.read();
  const lab::Text text = read_corpus(flags.text);
  if (run.text_fingerprint != lab::shown_fingerprint(text)) {
    refuse(fmt::format("lab resume: the run was begun with {}, but the text is now {} (--text names another)",
                       run.text_name, text.name));
  }
  return finish_run(folder, run, text, effort_of(flags));
}

int report_run(const LabFlags& flags) {
  if (flags.name.empty()) refuse("lab report: needs the folder of a run");
  const LabFolder folder(flags.name);
  print(write_lab_report(folder, folder.read(), std::min(output_columns(), kReportColumns),
                         wants_colour(STDOUT_FILENO)));
  return kDone;
}

// The sizes that show how far a model extrapolates.
std::vector<std::int64_t> sizes_past(const lab::Task& task, std::int64_t size) {
  if (!task.is_scored_exactly) return {size, 2 * size, 4 * size, 8 * size};
  std::vector<std::int64_t> sizes;
  for (const std::int64_t percent : {100, 110, 125, 150, 200}) {
    const std::int64_t next = (size * percent + 99) / 100;
    if (task.name == "copy-distinct" && next > task.symbols) break;
    if (sizes.empty() || next > sizes.back()) sizes.push_back(next);
  }
  return sizes;
}

int train_one(const LabFlags& flags) {
  if (!flags.name.empty()) refuse(fmt::format("lab train: takes flags only, not '{}'", flags.name));
  const lab::Text text = read_corpus(flags.text);
  lab::Job job = flags.job;
  const lab::Task& task = lab::task_named(job.task);
  job.seed = static_cast<std::uint64_t>(flags.seed);
  job.shards = std::min<std::int64_t>(4, job.batch);
  job.warmup = std::min<std::int64_t>(job.warmup, job.steps / 4);
  job.sizes = sizes_past(task, job.size);
  job.evaluated = task.is_scored_exactly ? 500 : 16'384;
  job.name = fmt::format("{}-{}{}-{}", job.task, job.shape.scheme, job.shape.random_positions > 0 ? "-random" : "",
                         job.seed);
  lab::fit_shape(job, text);
  lab::check(job);
  const LabFolder folder(flags.folder.empty() ? "lab-" + job.name : flags.folder);
  const LabRun run = run_of(text, {job}, "");
  const LabEffort effort = effort_of(flags);
  folder.begin(run, flags.force);
  run_jobs(folder, run, text, effort);
  const lab::Outcome outcome = folder.result(job);
  std::string table =
      fmt::format("{:>8}  {:>10}  {:>11}\n", "size", task.is_scored_exactly ? "exact" : "perplexity", "right");
  for (const lab::Score& score : outcome.scores) {
    const std::string main = task.is_scored_exactly ? fmt::format("{:.1f}%", 100 * score.accuracy())
                                                    : fmt::format("{:.3f}", score.perplexity());
    table += fmt::format(
        "{:>8}  {:>10}  {:>10.1f}%\n", score.size, main,
        100.0 * static_cast<double>(score.right) / static_cast<double>(std::max<std::int64_t>(1, score.tokens)));
  }
  print(table + fmt::format("\nCheckpoint: {}\n", folder.path(job.name + "/checkpoint.safetensors")));
  return kDone;
}

// The only model of a run, for the explorer's page "A model".
int pack_model(const LabFlags& flags) {
  if (flags.name.empty() || flags.folder.empty()) refuse("lab pack: needs the folder of a run, and -o FILE");
  const LabFolder folder(flags.name);
  const LabRun run = folder.read();
  if (run.jobs.size() != 1) refuse(fmt::format("lab pack: the run has {} models but must have one", run.jobs.size()));
  const lab::Job& job = run.jobs.front();
  const lab::Text text = read_corpus(flags.text);
  if (!lab::task_named(job.task).uses_text) refuse(fmt::format("lab pack: {} is no task of texts", job.task));
  if (!folder.has_result(job)) refuse(fmt::format("lab pack: {} has not been trained to its end", job.name));
  lab::PackedModel model;
  model.network = folder.state(job, text).network;
  model.alphabet = text.alphabet;
  model.text = text.name;
  Json::Array scores;
  for (const lab::Score& score : folder.result(job).scores) scores.push_back(to_json(score));
  model.scores = std::move(scores);
  OutputFile file(output_target(flags.folder, flags.force));
  file.write(lab::pack(model));
  file.publish();
  return kDone;
}

int list_choices() {
  std::string text = "Presets\n";
  for (const lab::Preset& preset : lab::presets()) text += fmt::format("  {:<18} {}\n", preset.name, preset.summary);
  text += "\nTasks\n";
  for (const lab::Task& task : lab::tasks()) text += fmt::format("  {:<18} {}\n", task.name, task.summary);
  text += "\nSchemes\n ";
  for (const std::string_view name : lab::trainable_schemes()) text += fmt::format(" {}", name);
  print(text + "\n");
  return kDone;
}

int run_lab(const LabFlags& flags) {
  if (flags.action == "run") return run_preset(flags);
  if (flags.action == "resume") return resume_run(flags);
  if (flags.action == "report") return report_run(flags);
  if (flags.action == "train") return train_one(flags);
  if (flags.action == "pack") return pack_model(flags);
  if (flags.action == "list" || flags.action.empty()) return list_choices();
  refuse(fmt::format("lab: unknown action '{}' ({})", flags.action,
                     suggestion(flags.action, {"run", "resume", "report", "train", "pack", "list"})));
}

}  // namespace

Verb lab_verb(Command program) {
  Verb verb;
  verb.name = "lab";
  verb.summary = "train small Transformers and test published claims about positional encodings";
  verb.usage = "run PRESET | resume DIR | report DIR | train … | pack DIR -o FILE | list";
  verb.details =
      "run trains every model of a preset, judges the published claims (reproduced, refuted, undecided, not testable "
      "here) and writes report.html, summary.json, checkpoints and tables to a folder. Ctrl-C leaves a checkpoint; resume "
      "continues bit for bit. train trains one model of your own; pack writes it in a byte per weight, as the explorer "
      "runs it. The text is the file that POSENC_LAB_TEXT or --text names (./run installs Moby Dick), or a generated one.";
  verb.examples =
      "posenc lab run smoke\n"
      "posenc lab resume lab-smoke\n"
      "posenc lab train --scheme alibi --task copy --size 10 --steps 1200\n"
      "posenc lab list";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<LabFlags>();
  verb.command.add_option("ACTION", flags->action).choices({"run", "resume", "report", "train", "pack", "list"});
  verb.command.add_option("NAME", flags->name);
  verb.command.add_option("-o,--output", flags->folder, "folder of the run (default lab-NAME)").type_name("DIR");
  verb.command.add_option("--text", flags->text, "text to learn").type_name("FILE");
  verb.command.add_choice("--scheme", flags->job.shape.scheme, lab::trainable_schemes(),
                          "train: positional encoding");
  std::vector<std::string_view> tasks;
  for (const lab::Task& task : lab::tasks()) tasks.push_back(task.name);
  verb.command.add_choice("--task", flags->job.task, tasks, "train: what to learn; lab list explains them");
  verb.command.add_integer("--size", flags->job.size, {1, 4096}, "train: bytes of a text, symbols of a question");
  verb.command.add_integer("--steps", flags->job.steps, {0, 10'000'000}, "train: steps");
  verb.command.add_integer("--batch", flags->job.batch, {1, 4096}, "train: sequences in a step");
  verb.command.add_integer("--layers", flags->job.shape.layers, {1, 64}, "train: layers");
  verb.command.add_integer("--heads", flags->job.shape.heads, {1, 256}, "train: attention heads");
  verb.command.add_integer("--width", flags->job.shape.width, {2, 8192}, "train: features of a token (d_model)");
  verb.command.add_integer("--seed", flags->seed, {0, 1'000'000'000}, "train: seed of weights and batches");
  verb.command.add_integer("--random-positions", flags->job.shape.random_positions, {0, 1'048'576},
                           "train: draw positions below N (Ruoss et al.); 0: 0, 1, 2 …");
  verb.command.add_number("--learning-rate", flags->job.learning_rate, {0, 1, true}, "train: largest learning rate");
  verb.command.add_integer("--threads", flags->threads, {1, 1024}, "threads; results do not depend on them");
  verb.command.add_flag("--force", flags->force, "begin anew in a folder that holds a run");
  verb.command.add_flag("--long", flags->is_long, "run: start the preset full although it takes hours");
  verb.command.add_flag("--quiet", flags->quiet, "show no progress");
  verb.run = [flags] { return run_lab(*flags); };
  return verb;
}

}  // namespace posenc::cli
