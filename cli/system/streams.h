#pragma once

#include <string_view>

namespace posenc::cli {

/// Makes sure that descriptors 0, 1 and 2 are taken, so that no file we open lands there and is mistaken for
/// standard output. A closed one is replaced by one that refuses: writing to it is still an error.
void hold_standard_descriptors();

/// Writes everything, whatever the descriptor: partial writes, interruptions, pipes that are full for now.
/// Throws: Failure: quietly 141 where nobody reads any more, else 3 with `name` and the reason.
void write_all(int descriptor, std::string_view bytes, std::string_view name);

/// Standard output. All of the program's output goes through here; nothing is buffered.
void print(std::string_view text);
/// Closes standard output and checks it: some file systems report a full disk only now.
void finish_output();

/// A message on stderr, best effort: "posenc: TEXT".
void tell(std::string_view text) noexcept;

}  // namespace posenc::cli
