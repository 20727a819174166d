// pack_ptx OUT IN…: packs the PTX of one kernel, compiled for several cases, into as few bytes as zlib allows.
// Removes comments and spaces, writes the numbers of registers as differences, then replaces long repetitions, which are
// frequent between variants of a kernel but too far apart for zlib, and compresses the result. src/kernels/cuda/packs.cpp
// reads it:
//   four little-endian 32-bit numbers: the sizes of the text, the steps, the compressed steps and the literals
//   the steps, compressed: numbers with 7 bits per byte: literals to take, bytes to copy, and from how far back
//   the literals, compressed
// The text is the modules, each followed by a zero byte.

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Removes comments, blank lines and unnecessary spaces.
std::string plain(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    std::string line;
    for (std::size_t i = at; i < end && text.compare(i, 2, "//") != 0; ++i) {
      const char c = text[i] == '\t' ? ' ' : text[i];
      if (c == ' ' && (line.empty() || line.back() == ' ' || line.back() == ',')) continue;
      line += c;
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (!line.empty()) out += line + '\n';
    at = end + 1;
  }
  return out;
}

// "%r123" becomes the difference from the last number after the same letters, "%r+2": variants of a kernel number their
// registers differently, but in the same order.
std::string by_differences(const std::string& text) {
  const auto is_letter = [&](std::size_t i) { return i < text.size() && text[i] >= 'a' && text[i] <= 'z'; };
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  std::map<std::string, long> last;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    out += text[at];
    if (text[at++] != '%' || !is_letter(at)) continue;
    std::string letters, digits;
    for (; is_letter(at); ++at) letters += text[at];
    for (; is_digit(at); ++at) digits += text[at];
    out += letters;
    if (digits.empty()) {
      if (at < text.size() && (text[at] == '+' || text[at] == '-')) std::exit(3);  // would be taken for a difference
      continue;
    }
    const long number = std::stol(digits), difference = number - last[letters];
    out += (difference < 0 ? "" : "+") + std::to_string(difference);
    last[letters] = number;
  }
  return out;
}

void put(std::string& out, std::size_t number) {
  for (; number >= 128; number >>= 7) out += static_cast<char>((number & 127) | 128);
  out += static_cast<char>(number);
}
void put_32(std::string& out, std::size_t number) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(number >> shift & 255);
}

std::string compressed(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size(), 9);
  out.resize(size);
  return out;
}

std::uint64_t hash_of(const char* at, std::size_t count) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < count; ++i) hash = hash * 0x9E3779B97F4A7C15ull + static_cast<unsigned char>(at[i]);
  return hash;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  std::string text;
  for (int n = 2; n < count; ++n) text += by_differences(plain(read(arguments[n]))) + '\0';

  constexpr std::size_t kLeast = 24;  // zlib handles shorter repetitions
  std::unordered_map<std::uint64_t, std::size_t> seen;
  std::string steps, literals;
  std::size_t begin = 0;  // of the literals that no step covers yet
  for (std::size_t at = 0; at + kLeast <= text.size();) {
    const std::uint64_t hash = hash_of(text.data() + at, kLeast);
    const auto found = seen.find(hash);
    if (found != seen.end() && text.compare(found->second, kLeast, text, at, kLeast) == 0) {
      std::size_t from = found->second, length = kLeast;
      while (at + length < text.size() && text[from + length] == text[at + length]) ++length;
      while (at > begin && from > 0 && text[from - 1] == text[at - 1]) --at, --from, ++length;
      put(steps, at - begin), put(steps, length), put(steps, at - from);
      literals.append(text, begin, at - begin);
      at += length, begin = at;
      continue;
    }
    if (at % 4 == 0) seen[hash] = at;
    ++at;
  }
  put(steps, text.size() - begin), put(steps, 0), put(steps, 0);
  literals.append(text, begin);

  std::string out;
  const std::string packed_steps = compressed(steps);
  put_32(out, text.size()), put_32(out, steps.size()), put_32(out, packed_steps.size()), put_32(out, literals.size());
  out += packed_steps + compressed(literals);
  std::ofstream file(arguments[1], std::ios::binary);
  file << out;
  return file.flush() ? 0 : 1;
}
