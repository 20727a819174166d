#pragma once

namespace posenc::cli {

/// From now on SIGINT, SIGTERM and SIGHUP only set a flag, and SIGPIPE and SIGXFSZ become errors of write(). A signal
/// that is already ignored (nohup) stays ignored.
void catch_signals();

/// Throws: Failure with 128 + the signal, once one has arrived. Long work calls it between blocks, so that
/// destructors clean up.
void stop_if_signalled();

/// For code that must write something before the program ends: stop_if_signalled() does not interrupt it.
void forget_signal();

}  // namespace posenc::cli
