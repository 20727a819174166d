#include "lab/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lab/philox.h"
#include "posenc/error.h"

namespace posenc::lab {
namespace {

constexpr std::uint64_t kGrammarSeed = 20170612;
constexpr std::int64_t kWords = 800;

std::vector<std::string> made_up_words() {
  constexpr std::string_view kStarts[] = {"b", "br", "c",  "ch", "d", "f",  "g",  "h", "k",  "l", "m",
                                          "n", "p",  "pr", "r",  "s", "sh", "st", "t", "th", "v", "w"};
  constexpr std::string_view kMiddles[] = {"a", "e", "i", "o", "u", "ai", "ee", "oa", "ou"};
  constexpr std::string_view kEnds[] = {"", "n", "r", "s", "t", "l", "ck", "nd", "rk", "st", "m"};
  const auto pick = [](const auto& from, Stream& random) {
    return from[random.below(static_cast<std::int64_t>(std::size(from)))];
  };
  std::vector<std::string> words;
  for (std::int64_t i = 0; i < kWords; ++i) {
    Stream random(kGrammarSeed, Purpose::kText, 0, i);
    const std::int64_t syllables = 1 + random.below(i < 100 ? 2 : 3);
    std::string word;
    for (std::int64_t s = 0; s < syllables; ++s) {
      word += pick(kStarts, random);
      word += pick(kMiddles, random);
      word += pick(kEnds, random);
    }
    words.push_back(std::move(word));
  }
  return words;
}

// Rank r has weight 1/(r + 2), so the sum up to r is approximately a logarithm.
std::int64_t zipf(Stream& random) {
  const double span = std::log((kWords + 2.0) / 2.0);
  return std::min<std::int64_t>(kWords - 1, static_cast<std::int64_t>(2 * std::exp(random.uniform() * span) - 2));
}

}  // namespace

std::string generated_text() {
  constexpr std::size_t kBytes = 600'000;
  const std::vector<std::string> words = made_up_words();
  std::string text;
  text.reserve(kBytes + 200);
  for (std::int64_t sentence = 0; text.size() < kBytes; ++sentence) {
    Stream random(kGrammarSeed, Purpose::kText, 1, sentence);
    const std::int64_t length = 5 + random.below(14), subject = zipf(random);
    std::int64_t word = subject;
    for (std::int64_t i = 0; i < length; ++i) {
      if (i > 0) text += i % 6 == 5 && random.below(2) == 0 ? ", " : " ";
      std::string next = words[word];
      if (i == 0) next[0] = static_cast<char>(next[0] - 'a' + 'A');
      text += next;
      const std::int64_t kind = random.below(10);
      if (kind < 5) {  // one of three words that often follow this one
        word = (word * 7919 + 13 + random.below(3) * 104729) % kWords;
      } else {
        word = kind < 7 ? subject : zipf(random);
      }
    }
    text += random.below(8) == 0 ? ".\n\n" : ". ";
  }
  text.resize(kBytes);
  return text;
}

Text read_text(std::string name, std::string_view bytes) {
  if (bytes.size() < 10'000) {
    raise(fmt::format("lab: {} has {} bytes; a corpus needs 10,000 at least", name, bytes.size()));
  }
  Text text;
  text.name = std::move(name);
  std::array<std::int32_t, 256> number{};
  for (const char byte : bytes) number[static_cast<unsigned char>(byte)] = 1;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (number[byte] == 0) continue;
    number[byte] = static_cast<std::int32_t>(text.alphabet.size());
    text.alphabet.push_back(static_cast<char>(byte));
  }
  text.fingerprint = 0xcbf29ce484222325;
  text.symbols.reserve(bytes.size());
  for (const char byte : bytes) {
    text.symbols.push_back(number[static_cast<unsigned char>(byte)]);
    text.fingerprint = (text.fingerprint ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  text.training = static_cast<std::int64_t>(bytes.size()) * 9 / 10;
  return text;
}

}  // namespace posenc::lab
