#include "cli/pages/practice_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "cli/pages/flash_card.h"
#include "cli/system/failure.h"
#include "cli/system/line_input.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"

namespace posenc::cli {
namespace {

constexpr int kMostColumns = 100;
constexpr int kMostTries = 2;

/// Thrown when the learner stops or the input ends.
struct Stopped {};

class Session {
 public:
  Session(std::uint64_t seed, std::int64_t day, const std::function<void(const Review&)>& keep)
      : seed_(seed), day_(day), keep_(keep), colour_(wants_colour(STDOUT_FILENO)), echo_(isatty(STDIN_FILENO) != 1) {}

  void run(const std::vector<PracticeItem>& items) {
    std::deque<PracticeItem> queue(items.begin(), items.end());
    std::size_t number = 0;
    std::uint64_t repeats = 0;
    try {
      say(fmt::format(
          "{} item{}, seed {}. Press Enter after each answer; ? shows a hint, then the solution; s skips, q quits.",
          items.size(), items.size() == 1 ? "" : "s", seed_));
      while (!queue.empty()) {
        PracticeItem item = std::move(queue.front());
        queue.pop_front();
        heading(item, ++number, items.size());
        const auto begin = std::chrono::steady_clock::now();
        const std::optional<int> grade = ask(item);
        if (!grade) continue;
        const auto spent = std::chrono::steady_clock::now() - begin;
        finish(item, *grade, std::chrono::duration_cast<std::chrono::milliseconds>(spent).count());
        if (!asks_again_today(*grade)) continue;
        item.again = true;
        if (auto* fill_in = std::get_if<Exercise>(&item.what)) *fill_in = another_exercise(*fill_in, ++repeats);
        queue.push_back(std::move(item));
      }
    } catch (const Stopped&) {
    } catch (const Failure& failure) {
      if (failure.code > 128 && failure.code != kReaderGone) last_words();
      throw;
    }
    summary();
  }

  // Shows the rows of a walkthrough, then its question. The numbers are always the same, and no progress is stored.
  void walk(const Walkthrough& one) {
    int right = 0, blanks = 0;
    try {
      strongly(fmt::format("{} · {}", one.title, topic_title(one.topic)));
      say(one.setup);
      say("Press Enter after each answer; ? shows a hint, then the solution; s skips, q quits.");
      for (const WalkthroughStep& step : one.steps) {
        print("\n");
        strongly(step.heading);
        for (const WalkthroughBlank& blank : step.blanks) {
          ++blanks;
          const std::optional<int> grade =
              ask_fill_in(blank.exercise, fmt::format("{} = ", blank.label), Detail::kBrief);
          if (grade && *grade >= kHard) ++right;
        }
        say(step.result);
      }
      print("\n");
      strongly("Compare the rows");
      // Nothing is stored, so the learner is not asked how well the answer was known.
      one.question.choices.empty() ? (void)show_open(one.question) : (void)ask_choice(one.question, false);
    } catch (const Stopped&) {}
    print("\n");
    strongly(fmt::format("{} of {} filled in correctly.", right, blanks));
  }

  std::vector<Review> reviews() && { return std::move(reviews_); }

 private:
  int columns() const { return std::min(output_columns(), kMostColumns); }

  void say(std::string_view text, int indent = 0) {
    std::string out;
    // Bold text takes no columns, so it is applied after wrapping.
    for (const std::string& line : wrap(as_terminal_text(text, false), columns() - indent)) {
      out += std::string(indent, ' ') + line + "\n";
    }
    print(out);
  }
  void strongly(std::string_view text) { print(bold(text, colour_) + "\n"); }
  void faintly(std::string_view text) {
    std::string out;
    for (const std::string& line : wrap(text, columns())) out += dim(line, colour_) + "\n";
    print(out);
  }

  void heading(const PracticeItem& item, std::size_t number, std::size_t count) {
    const std::string place = item.again ? "again" : fmt::format("{} of {}", number, count);
    print("\n");
    strongly(fmt::format("{} · {} · {}", place, item.kind(), topic_title(item.topic())));
  }

  std::string line(std::string_view prompt) {
    print(prompt);
    std::optional<std::string> typed = input_.next();
    if (!typed) {
      print("\n");
      throw Stopped{};
    }
    // Input from a pipe is echoed, so that the output reads as a dialogue.
    if (echo_) print(one_line(*typed) + "\n");
    const std::size_t begin = typed->find_first_not_of(" \t");
    const std::size_t end = typed->find_last_not_of(" \t");
    std::string answer = begin == std::string::npos ? "" : typed->substr(begin, end - begin + 1);
    if (answer == "q" || answer == "quit") throw Stopped{};
    return answer;
  }

  std::optional<int> ask(const PracticeItem& item) {
    if (const auto* question = std::get_if<Question>(&item.what)) return ask_question(*question, item.again);
    if (const auto* card = std::get_if<Card>(&item.what)) return ask_card(*card);
    const Exercise& exercise = std::get<Exercise>(item.what);
    say(exercise.prompt);
    return ask_fill_in(exercise, "> ", Detail::kFull);
  }

  std::optional<int> ask_question(const Question& question, bool again) {
    return question.choices.empty() ? ask_open(question) : ask_choice(question, again);
  }

  void cite(std::string_view source) { faintly(fmt::format("Source: {}", source)); }

  void hint(std::string_view text) {
    say(text.empty() ? "No hint for this one." : fmt::format("Hint: {}", text));
    say("Type ? again to see the solution.");
  }

  std::optional<int> ask_choice(const Question& question, bool again) {
    const std::vector<std::size_t> order =
        again ? another_order_of_choices(question, seed_) : order_of_choices(question, seed_);
    say(question.prompt);
    for (std::size_t i = 0; i < order.size(); ++i) choice(i + 1, question.choices[order[i]].text);
    bool hinted = false;
    while (true) {
      const std::string typed = line("> ");
      if (typed == "s") return std::nullopt;
      if (typed == "?" && hinted) {
        solution(question, order);
        return kAgain;
      }
      if (typed == "?") {
        hinted = true;
        hint(question.hint);
        continue;
      }
      if (typed.size() != 1 || typed[0] < '1' || static_cast<std::size_t>(typed[0] - '1') >= order.size()) {
        say(fmt::format("Type a number from 1 to {}, or ?, s, q.", order.size()));
        continue;
      }
      const AnswerChoice& chosen = question.choices[order[typed[0] - '1']];
      if (chosen.right) {
        strongly("Right.");
        say(question.answer);
        cite(question.source);
        return hinted ? kHard : kGood;
      }
      strongly("Not that one.");
      say(chosen.because);
      solution(question, order);
      return kAgain;
    }
  }

  void solution(const Question& question, const std::vector<std::size_t>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (question.choices[order[i]].right) say(fmt::format("The answer is {}: {}", i + 1, question.answer));
    }
    cite(question.source);
  }

  void choice(std::size_t number, std::string_view text) {
    std::string head = fmt::format("  {}  ", number);
    for (const std::string& part : wrap(as_terminal_text(text, false), columns() - 5)) {
      print(head + part + "\n");
      head = "     ";
    }
  }

  std::optional<int> ask_open(const Question& question) {
    if (!show_open(question)) return std::nullopt;
    return self_grade();
  }

  // Returns false if the question is skipped.
  bool show_open(const Question& question) {
    say(question.prompt);
    for (bool hinted = false;; hinted = true) {
      const std::string typed = line("Answer in your head or here, then press Enter > ");
      if (typed == "s") return false;
      if (typed != "?" || hinted) break;
      hint(question.hint);
    }
    say(question.answer);
    cite(question.source);
    return true;
  }

  std::optional<int> ask_card(const Card& card) {
    say(card.front);
    // A card has no hint: ? shows the answer, as Enter does.
    if (line("Press Enter to show the answer > ") == "s") return std::nullopt;
    say(card.back);
    cite(card.source);
    return self_grade();
  }

  std::optional<int> self_grade() {
    while (true) {
      const std::string typed = line("How well did you know it? 1 again, 2 hard, 3 good, 4 easy > ");
      if (typed == "s") return std::nullopt;
      if (typed.size() == 1 && typed[0] >= '1' && typed[0] <= '4') return typed[0] - '0';
      say("Type a number from 1 to 4, or s, q.");
    }
  }

  enum class Detail : std::uint8_t { kFull, kBrief };  // after a right answer: the computation, or only the verdict

  std::optional<int> ask_fill_in(const Exercise& exercise, std::string_view prompt, Detail detail) {
    bool hinted = false;
    for (int tries = 0; tries < kMostTries;) {
      const std::string typed = line(prompt);
      if (typed == "s") return std::nullopt;
      if (typed == "?" && hinted) break;  // the solution
      if (typed == "?") {
        hinted = true;
        hint(exercise.hint);
        continue;
      }
      const Grade graded = grade(exercise, typed);
      switch (graded.verdict) {
        case Mark::kRight:
          strongly("Right.");
          if (detail == Detail::kFull) explain(exercise);
          return tries == 0 && !hinted ? kGood : kHard;
        case Mark::kTooFewDigits:
          say("Right so far, but give all the decimals asked for.");
          continue;
        case Mark::kNotANumber:
          say("That is not a number. Type a number, or ?, s, q.");
          continue;
        case Mark::kKnownMistake:
          name_mistakes(exercise, graded);
          break;
        case Mark::kWrong:
          say("Not quite, and it matches no common mistake.");
          break;
      }
      if (++tries < kMostTries) say("Try again.");
    }
    strongly(fmt::format("The answer is {}.", shown_answer(exercise)));
    explain(exercise);
    return kAgain;
  }

  void name_mistakes(const Exercise& exercise, const Grade& graded) {
    std::string text = "Not quite. ";
    for (std::size_t i = 0; i < graded.mistakes.size(); ++i) {
      const Mistake& mistake = exercise.mistakes[graded.mistakes[i]];
      text += fmt::format("{}{}: {} ", i == 0 ? "This looks like " : "Or ", mistake.name, mistake.because);
      ++mistakes_[mistake.name];
    }
    text.pop_back();
    say(text);
  }

  void explain(const Exercise& exercise) {
    say(exercise.working);
    if (!exercise.command.empty()) faintly(exercise.command);
  }

  void finish(const PracticeItem& item, int grade, std::int64_t milliseconds) {
    const Review review{.id = item.id(),
                        .at = static_cast<std::int64_t>(std::time(nullptr)),
                        .day = day_,
                        .grade = grade,
                        .again = item.again,
                        .milliseconds = milliseconds};
    keep_(review);
    reviews_.push_back(review);
  }

  // After a signal. The terminal may be gone, but the signal remains the reason for the exit.
  void last_words() noexcept {
    try {
      print("\n");
      summary();
    } catch (...) {}
  }

  void summary() {
    const auto first = std::count_if(reviews_.begin(), reviews_.end(), [](const Review& one) { return !one.again; });
    const auto known = std::count_if(reviews_.begin(), reviews_.end(),
                                     [](const Review& one) { return !one.again && one.grade >= kHard; });
    print("\n");
    strongly(first == 0 ? std::string("No answers.") : fmt::format("{} answered, {} correct.", first, known));
    if (mistakes_.empty()) return;
    std::string list;
    for (const auto& [name, count] : mistakes_) {
      list +=
          fmt::format("{}{}{}", list.empty() ? "" : ", ", name, count == 1 ? "" : fmt::format(" ({} times)", count));
    }
    say(fmt::format("Mistakes: {}.", list));
  }

  std::uint64_t seed_;
  std::int64_t day_;
  const std::function<void(const Review&)>& keep_;
  bool colour_, echo_;
  LineInput input_;
  std::vector<Review> reviews_;
  std::map<std::string, int> mistakes_;
};

}  // namespace

std::vector<Review> practice(const std::vector<PracticeItem>& items, std::uint64_t seed, std::int64_t day,
                             const std::function<void(const Review&)>& keep) {
  Session session(seed, day, keep);
  session.run(items);
  return std::move(session).reviews();
}

void practice_walkthrough(const Walkthrough& walkthrough) {
  const std::function<void(const Review&)> keep_nothing;
  Session(0, 0, keep_nothing).walk(walkthrough);
}

}  // namespace posenc::cli
