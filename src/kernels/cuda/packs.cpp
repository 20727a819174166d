// Decompresses the PTX that the library stores (cmake/pack_ptx.cpp).

#include <zlib.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/cuda/module.h"
#include "posenc/error.h"

namespace posenc::kernels::cuda {
namespace {

std::size_t number_32(std::string_view bytes, std::size_t at) {
  std::size_t number = 0;
  for (std::size_t n = 0; n < 4; ++n) number |= std::size_t{static_cast<unsigned char>(bytes[at + n])} << (8 * n);
  return number;
}

std::string inflated(std::string_view bytes, std::size_t size) {
  std::string text(size, '\0');
  uLongf made = size;
  const int status = uncompress(reinterpret_cast<Bytef*>(text.data()), &made,
                                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (status != Z_OK || made != size) raise("cuda: the kernels of this build are damaged");
  return text;
}

std::string unpacked(std::string_view pack) {
  constexpr std::size_t kHead = 16;
  const std::size_t size = number_32(pack, 0), packed = number_32(pack, 8);
  const std::string steps = inflated(pack.substr(kHead, packed), number_32(pack, 4)),
                    literals = inflated(pack.substr(kHead + packed), number_32(pack, 12));
  std::string text;
  text.reserve(size);
  std::size_t at = 0, taken = 0;
  const auto next = [&] {
    std::size_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(steps[at++]);
      number |= std::size_t{byte & 127u} << shift;
      if (byte < 128) return number;
    }
  };
  while (text.size() < size) {
    const std::size_t count = next();
    text.append(literals, taken, count);
    taken += count;
    const std::size_t length = next(), back = next();
    for (std::size_t n = 0; n < length; ++n) text += text[text.size() - back];  // source and destination may overlap
  }
  return text;
}

// "%r+2" becomes "%r123": the number is relative to the last one after the same letters in the module.
std::string with_numbers(std::string_view text) {
  const auto is_letter = [&](std::size_t i) { return i < text.size() && text[i] >= 'a' && text[i] <= 'z'; };
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  std::map<std::string_view, long> last;
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    out += c;
    if (c != '%') continue;
    const std::size_t begin = at;
    while (is_letter(at)) ++at;
    const std::string_view letters = text.substr(begin, at - begin);
    out += letters;
    if (letters.empty() || at == text.size() || (text[at] != '+' && text[at] != '-')) continue;
    const long sign = text[at++] == '-' ? -1 : 1;
    long difference = 0;
    for (; is_digit(at); ++at) difference = 10 * difference + (text[at] - '0');
    out += std::to_string(last[letters] += sign * difference);
  }
  return out;
}

}  // namespace

const char* text_of(const PtxModule& module) {
  struct Unpacked {
    std::mutex lock;
    std::map<const char*, std::string> packs;
    std::map<std::pair<const char*, int>, std::string> texts;
  };
  static Unpacked& all = *new Unpacked;  // never destroyed, like the kernels loaded from it
  const std::lock_guard<std::mutex> hold(all.lock);
  std::string& text = all.texts[{module.pack.data(), module.number}];
  if (!text.empty()) return text.c_str();
  std::string& pack = all.packs[module.pack.data()];
  if (pack.empty()) pack = unpacked(module.pack);
  const char* at = pack.data();
  for (int n = 0; n < module.number; ++n) at += std::string_view(at).size() + 1;
  text = with_numbers(at);
  return text.c_str();
}

}  // namespace posenc::kernels::cuda
