#pragma once

namespace posenc::cli {

/// From now on SIGINT, SIGTERM and SIGHUP only set a flag, and SIGPIPE and SIGXFSZ become errors of write().
/// A signal that is ignored already (nohup) stays ignored.
void catch_signals();

/// Throws: Failure with 128 + the signal, once one has come. Long work calls it between blocks, so that
/// everything on the way out cleans up after itself.
void stop_if_signalled();

/// For whoever must write something before the program ends: stop_if_signalled() does not stop that.
void forget_signal();

}  // namespace posenc::cli
