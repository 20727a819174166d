#pragma once

#include "forms/memory.h"

namespace posenc::kernels {

using posenc::AlignedVector;
using posenc::Arena;
using posenc::arena_in_use;
using posenc::counter_in_use;
using posenc::CountMemory;
using posenc::give_lines;
using posenc::take_and_give;
using posenc::take_lines;
using posenc::UseArena;
using posenc::UseRest;

}  // namespace posenc::kernels
