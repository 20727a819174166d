#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwy/targets.h>

#include <atomic>
#if defined(__aarch64__) && defined(__linux__) && !defined(__clang__)
#include <sys/auxv.h>
#endif
#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__)
#include <cpuid.h>
#endif

#include "kernels/cpu/machine.h"
#include "posenc/backend.h"
#include "posenc/error.h"

namespace posenc {

// HWCAP2_BF16 and HWCAP_ASIMDFHM of the kernel's ABI, whose names are missing from older headers.
#if defined(__aarch64__) && defined(__linux__) && !defined(__clang__)
bool kernels::cpu::machine_rounds_to_bf16() noexcept {
  static const bool answer = (getauxval(AT_HWCAP2) & 1UL << 14) != 0;
  return answer;
}
bool kernels::cpu::machine_multiplies_f16_long() noexcept {
  static const bool answer = (getauxval(AT_HWCAP) & 1UL << 23) != 0;
  return answer;
}
#else
bool kernels::cpu::machine_rounds_to_bf16() noexcept { return false; }
bool kernels::cpu::machine_multiplies_f16_long() noexcept { return false; }
#endif

// CPUID 7.1: AVX512_BF16. Only AVX-512 code calls this, so the system saves its registers.
bool kernels::cpu::machine_rounds_16_to_bf16() noexcept {
#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__)
  static const bool answer = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1U << 5) != 0;
  }();
  return answer;
#else
  return false;
#endif
}

namespace {

std::atomic<bool> matrix_unit_is_allowed = true;

// AMX for bf16 (CPUID 7: AMX-TILE, AMX-BF16; and AVX512_BF16), saved across thread switches (XCR0), and Linux's
// permission to use it, which a process requests once: ARCH_REQ_XCOMP_PERM for the tiles' data, state 18.
bool has_amx() noexcept {
#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & 1U << 22) == 0 || (d & 1U << 24) == 0) return false;
  if (!kernels::cpu::machine_rounds_16_to_bf16()) return false;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & 1U << 27) == 0) return false;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 3U << 17) != 3U << 17) return false;
  long answer = 158;  // arch_prctl
  asm volatile("syscall" : "+a"(answer) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
  return answer == 0;
#else
  return false;
#endif
}

std::atomic<std::int64_t> forced_target = 0;  // 0: the best

std::vector<std::int64_t> available_targets() {
  hwy::SetSupportedTargetsForTest(0);  // a forced one would hide the others
  std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  hwy::SetSupportedTargetsForTest(forced_target);
  return targets;
}

}  // namespace

// BFMMLA was introduced with BFCVTN (FEAT_BF16).
bool kernels::cpu::machine_multiplies_bf16_matrices() noexcept {
  static const bool answer = machine_rounds_to_bf16() || has_amx();
  return answer && matrix_unit_is_allowed;
}
void kernels::cpu::allow_matrix_unit(bool is_allowed) noexcept { matrix_unit_is_allowed = is_allowed; }

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : available_targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void force_simd_target(std::string_view name) {
  std::int64_t wanted = 0;
  for (const std::int64_t target : available_targets()) {
    if (hwy::TargetName(target) == name) wanted = target;
  }
  if (wanted == 0 && !name.empty()) {
    raise(fmt::format("force_simd_target: no target '{}' here (there is {})", name, fmt::join(simd_targets(), ", ")));
  }
  forced_target = wanted;
  hwy::SetSupportedTargetsForTest(wanted);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace posenc
