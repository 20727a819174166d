#pragma once

/// POSENC_REPEAT_n(DO) is DO(0) DO(1) … DO(n − 1): one variable for each of n registers, where an array would not do (SVE
/// vectors cannot be its elements, and compilers spill it). Each DO is named for what it does, and undefined after its last
/// use.
#define POSENC_REPEAT_2(DO) DO(0) DO(1)
#define POSENC_REPEAT_4(DO) DO(0) DO(1) DO(2) DO(3)
#define POSENC_REPEAT_4_MORE(DO) DO(4) DO(5) DO(6) DO(7)
#define POSENC_REPEAT_8(DO) POSENC_REPEAT_4(DO) POSENC_REPEAT_4_MORE(DO)
#define POSENC_REPEAT_16(DO) POSENC_REPEAT_8(DO) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
