#include "cli/lab/lab_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "cli/system/failure.h"
#include "cli/system/input_file.h"
#include "cli/system/output_file.h"
#include "posenc/error.h"
#include "posenc/npy.h"
#include "posenc/version.h"

namespace posenc::cli {
namespace {

constexpr std::string_view kRunFile = "run.json", kResultFile = "result.json",
                           kCheckpointFile = "checkpoint.safetensors";
constexpr std::int64_t kLargestFile = std::int64_t{1} << 32;

void make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail_with_errno(path, errno);
}

Json json_of_run(const LabRun& run) {
  Json::Array jobs;
  for (const lab::Job& job : run.jobs) jobs.push_back(to_json(job));
  return Json::Object{{"format", "posenc-lab-run-1"},
                      {"posenc", POSENC_VERSION},
                      {"preset", run.preset},
                      {"text", run.text_name},
                      {"text_fingerprint", run.text_fingerprint},
                      {"jobs", jobs}};
}

std::string text_member(const Json& json, std::string_view name) {
  const auto* const found = json.find<std::string>(name);
  if (found == nullptr) raise(fmt::format("no text \"{}\"", name));
  return *found;
}

std::string metrics_csv(const lab::State& state) {
  std::string text = "step,loss,learning_rate,gradient_norm,tokens_per_second\n";
  for (const lab::Metric& metric : state.metrics) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{:.0f}\n", metric.step, metric.loss, metric.learning_rate,
                   metric.gradient_norm, metric.tokens_per_second);
  }
  return text;
}

std::string eval_csv(const lab::Outcome& outcome) {
  const lab::Job& job = outcome.job;
  std::string text = "scheme,seed,task,extension,size,part,nll,answers,right,samples,exact\n";
  for (const lab::Score& score : outcome.scores) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},all,{},{},{},{},{}\n", lab::title_of(job.shape),
                   job.seed, job.task, score.extension, score.size, score.nll, score.tokens, score.right,
                   score.samples, score.exact);
    for (std::size_t part = 0; part < score.by_position.size(); ++part) {
      fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},,,,\n", lab::title_of(job.shape), job.seed,
                     job.task, score.extension, score.size, part, score.by_position[part]);
    }
  }
  return text;
}

}  // namespace

std::string read_whole_file(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) fail_with_errno(path, errno);
  struct stat status {};
  if (fstat(file.number(), &status) != 0) fail_with_errno(path, errno);
  if (!S_ISREG(status.st_mode)) refuse(fmt::format("{} is not a regular file", path));
  if (status.st_size > kLargestFile) refuse(fmt::format("{} is larger than 4 GiB", path));
  return read_up_to(file, status.st_size, path);
}

lab::Text read_corpus(const std::string& path) {
  const char* const usual = std::getenv("POSENC_LAB_TEXT");
  const std::string from = !path.empty() ? path : usual != nullptr ? usual : "";
  if (from.empty()) return lab::read_text("generated text", lab::generated_text());
  const std::string name = from.substr(from.rfind('/') + 1);
  // The file that ./run installs.
  return lab::read_text(name == "moby-dick.txt" ? "Moby Dick" : name, read_whole_file(from));
}

std::string LabFolder::path(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

void LabFolder::write(std::string_view name, std::string_view bytes) const {
  OutputFile file(output_target(path(name), true));
  file.write(bytes);
  file.publish();
}

void LabFolder::begin(const LabRun& run, bool force) const {
  const bool exists = is_there(path_);
  const bool has_run = is_there(path(kRunFile));
  if (exists && !has_run) {
    if (rmdir(path_.c_str()) != 0)
      refuse(fmt::format("{} exists and is no run of the lab (choose another with -o)", path_));
  }
  if (has_run && !force) {
    refuse(fmt::format("{}: holds a run already (posenc lab resume {} continues it, --force begins anew)", path_,
                       path_));
  }
  make_folder(path_);
  for (const lab::Job& job : run.jobs) {
    make_folder(path(job.name));
    for (const std::string_view file : {kResultFile, kCheckpointFile}) {
      const std::string old = path(fmt::format("{}/{}", job.name, file));
      if (unlink(old.c_str()) != 0 && errno != ENOENT) fail_with_errno(old, errno);
    }
  }
  write(kRunFile, dump_json(json_of_run(run), 2) + "\n");
}

LabRun LabFolder::read() const {
  const std::string file = path(kRunFile);
  if (!is_there(file)) refuse(fmt::format("{} is no run of the lab (it has no run.json)", path_));
  try {
    const Json json = parse_json(read_whole_file(file));
    LabRun run;
    if (text_member(json, "format") != "posenc-lab-run-1") raise("unknown format");
    run.preset = text_member(json, "preset");
    run.text_name = text_member(json, "text");
    run.text_fingerprint = text_member(json, "text_fingerprint");
    const auto* const jobs = json.find<Json::Array>("jobs");
    if (jobs == nullptr) raise("no list \"jobs\"");
    for (const Json& job : *jobs) {
      run.jobs.push_back(lab::job_from_json(job));
      const std::string& name = run.jobs.back().name;
      // Names become paths.
      if (name.empty() || name.find('/') != std::string::npos || name.front() == '.') {
        raise(fmt::format("'{}' cannot be the name of a job", name));
      }
    }
    return run;
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", file, error.what()));
  }
}

bool LabFolder::has_result(const lab::Job& job) const {
  return is_there(path(fmt::format("{}/{}", job.name, kResultFile)));
}

lab::Outcome LabFolder::result(const lab::Job& job) const {
  const std::string file = path(fmt::format("{}/{}", job.name, kResultFile));
  try {
    return lab::outcome_from_json(parse_json(read_whole_file(file)));
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", file, error.what()));
  }
}

std::vector<lab::Outcome> LabFolder::results(const LabRun& run) const {
  std::vector<lab::Outcome> outcomes;
  for (const lab::Job& job : run.jobs) {
    if (has_result(job)) outcomes.push_back(result(job));
  }
  return outcomes;
}

lab::State LabFolder::state(const lab::Job& job, const lab::Text& text) const {
  const auto checkpoint = [&](const std::string& name) {
    const std::string file = path(fmt::format("{}/{}", name, kCheckpointFile));
    try {
      lab::Checkpoint read = lab::read_checkpoint(read_whole_file(file));
      if (read.text_fingerprint != lab::shown_fingerprint(text)) raise("was trained on another text");
      return read;
    } catch (const Error& error) {
      refuse(fmt::format("{}: {}", file, error.what()));
    }
  };
  if (is_there(path(fmt::format("{}/{}", job.name, kCheckpointFile)))) {
    lab::Checkpoint own = checkpoint(job.name);
    if (own.job != job) refuse(fmt::format("{}: its checkpoint is of another job than run.json has", path(job.name)));
    return std::move(own.state);
  }
  lab::State state = lab::begin(job);
  if (!job.parent.empty()) state.network.parameters = checkpoint(job.parent).state.network.parameters;
  return state;
}

void LabFolder::save(const lab::State& state, const lab::Job& job, const lab::Text& text) const {
  make_folder(path(job.name));
  write(fmt::format("{}/{}", job.name, kCheckpointFile), lab::checkpoint_of(state, job, text));
}

void LabFolder::finish(const lab::State& state, const lab::Outcome& outcome, const lab::Text& text) const {
  const std::string& name = outcome.job.name;
  save(state, outcome.job, text);
  write(name + "/metrics.csv", metrics_csv(state));
  write(name + "/eval.csv", eval_csv(outcome));
  const auto write_npy = [&](std::string_view what, const Extents& shape, const float* values) {
    write(fmt::format("{}/{}.npy", name, what),
          npy_head(DataType::kF32, shape) +
              std::string(reinterpret_cast<const char*>(values), count_of(shape) * sizeof(float)));
  };
  for (const lab::Slice& slice : state.network.layout.slices) {
    if (slice.is_position) write_npy(slice.name, slice.shape, state.network.parameters.data() + slice.offset);
  }
  const lab::AttentionMaps maps = lab::attention_maps(state.network, outcome.job, text);
  write_npy("attention", maps.shape, maps.weights.data());
  write(fmt::format("{}/{}", name, kResultFile), dump_json(to_json(outcome), 2) + "\n");
}

}  // namespace posenc::cli
