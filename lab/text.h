#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::lab {

/// A corpus as symbols: each byte value that occurs has a number, in ascending order. The first nine tenths are for
/// training, the rest for evaluation.
struct Text {
  std::string name;                   ///< as reports show it
  std::string alphabet;               ///< the byte of each symbol
  std::vector<std::int32_t> symbols;  ///< the whole corpus
  std::int64_t training = 0;          ///< number of symbols for training
  std::uint64_t fingerprint = 0;      ///< FNV-1a of the bytes: a resumed run must have the same text
};

/// Throws: Error for a text of fewer than 10,000 bytes.
Text read_text(std::string name, std::string_view bytes);

/// A substitute if no corpus is available: 600,000 bytes of made-up words in sentences, always the same. Word
/// frequencies follow Zipf's law, a few words are likely to follow each, and a sentence repeats its own subject.
std::string generated_text();

}  // namespace posenc::lab
