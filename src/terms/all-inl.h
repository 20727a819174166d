// The SIMD code of the terms that have some, one line for each.

#if defined(POSENC_ALL_TERMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_ALL_TERMS_INL_H
#undef POSENC_ALL_TERMS_INL_H
#else
#define POSENC_ALL_TERMS_INL_H
#endif

#include "terms/distance_table/distance_table-inl.h"  // IWYU pragma: export
#include "terms/gate_sums/gate_sums-inl.h"            // IWYU pragma: export
#include "terms/slopes/slopes-inl.h"                  // IWYU pragma: export
#include "terms/tile-inl.h"                           // IWYU pragma: export

#endif  // per-target include guard
