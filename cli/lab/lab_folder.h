#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/claims.h"
#include "lab/train.h"

namespace posenc::cli {

/// The definition of a run of the lab: DIR/run.json.
struct LabRun {
  std::string preset;  ///< "": a single model chosen by the user
  std::string text_name, text_fingerprint;
  std::vector<lab::Job> jobs;
};

/// The files of a run. Each job has its own folder: checkpoint.safetensors and metrics.csv, and once it is completed,
/// result.json, eval.csv, tables of the scheme's learned parameters and attention.npy.
class LabFolder {
 public:
  explicit LabFolder(std::string path) : path_(std::move(path)) {}

  /// Creates the folder and writes run.json. Throws: Failure if the folder contains another run and force is false,
  /// or anything that is not a run of the lab.
  void begin(const LabRun& run, bool force) const;
  /// Throws: Failure if there is no run.
  [[nodiscard]] LabRun read() const;

  [[nodiscard]] std::string path(std::string_view name) const;
  [[nodiscard]] bool has_result(const lab::Job& job) const;
  [[nodiscard]] lab::Outcome result(const lab::Job& job) const;
  /// The results of all completed jobs, in the order of the run.
  [[nodiscard]] std::vector<lab::Outcome> results(const LabRun& run) const;
  /// The model of a job at its last checkpoint, or before its first step.
  [[nodiscard]] lab::State state(const lab::Job& job, const lab::Text& text) const;

  void save(const lab::State& state, const lab::Job& job, const lab::Text& text) const;
  /// Writes the files of a completed job, result.json last.
  void finish(const lab::State& state, const lab::Outcome& outcome, const lab::Text& text) const;
  /// Replaces a file of the run.
  void write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
};

/// The contents of a regular file. Throws: Failure.
std::string read_whole_file(const std::string& path);

/// The corpus: from a file; for "", from the file that POSENC_LAB_TEXT names, or generated.
lab::Text read_corpus(const std::string& path);

}  // namespace posenc::cli
