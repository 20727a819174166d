#pragma once

namespace posenc::kernels::cpu {

/// Whether the machine has an instruction that rounds to bf16 (arm64's BFCVTN).
bool machine_rounds_to_bf16() noexcept;
/// Whether it has one that multiplies f16 and adds to float32 (arm64's FMLAL).
bool machine_multiplies_f16_long() noexcept;

}  // namespace posenc::kernels::cpu
