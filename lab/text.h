#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::lab {

/// A corpus as symbols: every byte that occurs has a number, in the order of bytes. The first nine tenths are for
/// training, the rest for evaluation.
struct Text {
  std::string name;                   ///< as reports show it
  std::string alphabet;               ///< the byte of each symbol
  std::vector<std::int32_t> symbols;  ///< the whole corpus
  std::int64_t training = 0;          ///< how many of them are for training
  std::uint64_t fingerprint = 0;      ///< FNV-1a of the bytes: a resumed run must have the same text
};

/// Throws: Error for a text of fewer than 10,000 bytes.
Text read_text(std::string name, std::string_view bytes);

/// Where no corpus can be had: 600,000 bytes of made-up words in sentences, the same everywhere. Words have frequencies
/// as in a language (Zipf), each is followed by a few favourites, and a sentence repeats its own subject.
std::string generated_text();

}  // namespace posenc::lab
