#pragma once

namespace posenc::kernels::cpu {

/// Whether the machine has an instruction that rounds to bf16 (arm64's BFCVTN).
bool machine_rounds_to_bf16() noexcept;
/// The same of x86-64, by vectors of 512 bits (VCVTNEPS2BF16).
bool machine_rounds_16_to_bf16() noexcept;
/// Whether it has one that multiplies f16 and adds to float32 (arm64's FMLAL).
bool machine_multiplies_f16_long() noexcept;
/// Whether it has a matrix unit for bf16 (arm64's BFMMLA, x86-64's AMX) that may be used; asks the system for it once.
bool machine_multiplies_bf16_matrices() noexcept;
/// For tests of what machines without one do.
void allow_matrix_unit(bool is_allowed) noexcept;

}  // namespace posenc::kernels::cpu
