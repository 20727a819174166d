#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/claims.h"
#include "lab/train.h"

namespace posenc::cli {

/// What a run of the lab consists of: DIR/run.json.
struct LabRun {
  std::string preset;  ///< "": one model of the user's own
  std::string text_name, text_fingerprint;
  std::vector<lab::Job> jobs;
};

/// The files of a run. A job has a folder of its own: checkpoint.safetensors, metrics.csv, and when it is done,
/// result.json, eval.csv, tables of what its scheme learned and attention.npy.
class LabFolder {
 public:
  explicit LabFolder(std::string path) : path_(std::move(path)) {}

  /// Makes the folder and writes run.json. Throws: Failure where the folder holds another run and force is false, or
  /// anything that is no run of the lab.
  void begin(const LabRun& run, bool force) const;
  /// Throws: Failure where there is no run.
  [[nodiscard]] LabRun read() const;

  [[nodiscard]] std::string path(std::string_view name) const;
  [[nodiscard]] bool has_result(const lab::Job& job) const;
  [[nodiscard]] lab::Outcome result(const lab::Job& job) const;
  /// Of every job that is done, in their order.
  [[nodiscard]] std::vector<lab::Outcome> results(const LabRun& run) const;
  /// The model of a job as far as it was trained, or before its first step.
  [[nodiscard]] lab::State state(const lab::Job& job, const lab::Text& text) const;

  void save(const lab::State& state, const lab::Job& job, const lab::Text& text) const;
  /// Everything of a job that is done; result.json comes last.
  void finish(const lab::State& state, const lab::Outcome& outcome, const lab::Text& text) const;
  /// Replaces a file of the run.
  void write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
};

/// The whole of a regular file. Throws: Failure.
std::string read_whole_file(const std::string& path);

/// The corpus: of a file; with "", of the file that POSENC_LAB_TEXT names, or generated.
lab::Text read_corpus(const std::string& path);

}  // namespace posenc::cli
