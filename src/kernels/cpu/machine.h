#pragma once

namespace posenc::kernels::cpu {

/// Whether the processor has an instruction that rounds to bf16 (arm64's BFCVTN).
bool machine_rounds_to_bf16() noexcept;
/// The same on x86-64, with 512-bit vectors (VCVTNEPS2BF16).
bool machine_rounds_16_to_bf16() noexcept;
/// Whether it has one that multiplies f16 and adds to float32 (arm64's FMLAL).
bool machine_multiplies_f16_long() noexcept;
/// Whether it has a usable matrix unit for bf16 (arm64's BFMMLA, x86-64's AMX); requests permission from the system
/// once.
bool machine_multiplies_bf16_matrices() noexcept;
/// For tests of the code for processors without one.
void allow_matrix_unit(bool is_allowed) noexcept;

}  // namespace posenc::kernels::cpu
