#pragma once

#include <string_view>

namespace posenc::cli {

/// Makes sure that descriptors 0, 1 and 2 are in use, so that no opened file gets one of them and is mistaken for
/// standard output. A closed one is replaced by one that rejects all use: writing to it is still an error.
void hold_standard_descriptors();

/// Writes everything to any descriptor: handles partial writes, interruptions and full pipes.
/// Throws: Failure: silently 141 if nobody reads any more, else 3 with `name` and the reason.
void write_all(int descriptor, std::string_view bytes, std::string_view name);

/// Standard output. All of the program's output goes through here, unbuffered.
void print(std::string_view text);
/// Closes standard output and checks for errors: some file systems report a full disk only now.
void finish_output();

/// A message on stderr, best effort: "posenc: TEXT".
void tell(std::string_view text) noexcept;

}  // namespace posenc::cli
