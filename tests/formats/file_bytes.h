#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "posenc/error.h"

namespace posenc {

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// The value as the file holds it: little-endian.
template <class T> std::string stored(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
template <class T> std::string stored_all(const std::vector<T>& values) {
  std::string bytes;
  for (const T value : values) bytes += stored(value);
  return bytes;
}

/// The message of what `read` throws, or "accepted".
template <class Read> std::string error_of(const Read& read) {
  try {
    read();
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

/// A file that is wrong, and what is said about it.
struct BadFile {
  const char* what;
  std::string file;
  std::string error;
};

/// Every bad file is refused with exactly its message, and that is one line.
template <class Read> void expect_refused(const std::vector<BadFile>& cases, const Read& read) {
  for (const BadFile& c : cases) {
    const std::string error = error_of([&] { read(c.file); });
    EXPECT_EQ(error, c.error) << c.what;
    EXPECT_EQ(error.find('\n'), std::string::npos) << c.what;
  }
}

/// A good file is refused when it is cut after any of its bytes. The copy is exactly as long as what is left, so that
/// AddressSanitizer sees every byte read past its end.
template <class Read> void expect_every_cut_refused(const std::string& good, const Read& read) {
  EXPECT_EQ(error_of([&] { read(good); }), "accepted");
  for (std::size_t length = 0; length < good.size(); ++length) {
    const std::string cut(good.data(), length);
    EXPECT_NE(error_of([&] { read(cut); }), "accepted") << "cut after " << length << " of " << good.size();
  }
}

/// Whatever byte is changed to whatever else, the file is read or refused.
template <class Read> void expect_survives_changes(const std::string& good, int tries, const Read& read) {
  std::mt19937 random(20'240'607);
  for (int i = 0; i < tries; ++i) {
    std::string file = good;
    for (int changes = static_cast<int>(random() % 3); changes >= 0; --changes) {
      file[random() % file.size()] = static_cast<char>(random() % 4 == 0 ? 0xFF : random() & 0xFF);
    }
    const std::string outcome = error_of([&] { read(file); });
    EXPECT_FALSE(outcome.empty());
  }
}

}  // namespace posenc
