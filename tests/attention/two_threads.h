#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "attention/allocations.h"
#include "attention/oracle.h"
#include "posenc/attention.h"

namespace posenc::tests {

/// A thread that waits for work beside the calling one, as an engine has them.
class TwoThreads {
 public:
  TwoThreads() : worker_([this] { work(); }) {}
  ~TwoThreads() {
    stops_ = true;
    worker_.join();
  }
  TwoThreads(const TwoThreads&) = delete;
  TwoThreads& operator=(const TwoThreads&) = delete;
  Pool pool() { return {&TwoThreads::run, this}; }
  std::atomic<std::int64_t> calls = 0, items_of_worker = 0;

 private:
  static void run(void* context, std::int64_t count, void (*item)(void*, std::int64_t), void* data) {
    auto& self = *static_cast<TwoThreads*>(context);
    ++self.calls;
    self.item_ = item;
    self.data_ = data;
    self.next_ = 0;
    self.count_ = count;
    self.is_open_ = true;
    self.take_items();
    self.is_open_ = false;
    while (self.is_busy_) std::this_thread::yield();
  }
  void take_items() {
    for (std::int64_t i = next_++; i < count_; i = next_++) {
      item_(data_, i);
      if (std::this_thread::get_id() == worker_.get_id()) ++items_of_worker;
    }
  }
  void work() {
    const CountOfThread count;
    while (!stops_) {
      is_busy_ = true;
      if (is_open_) take_items();
      is_busy_ = false;
      std::this_thread::yield();
    }
  }
  void (*item_)(void*, std::int64_t) = nullptr;
  void* data_ = nullptr;
  std::atomic<std::int64_t> next_ = 0, count_ = 0;
  std::atomic<bool> is_open_ = false, is_busy_ = false, stops_ = false;
  std::thread worker_;
};

/// A thread's first call registers what it keeps, which the C++ run-time allocates for.
inline void warm_up(TwoThreads& two) {
  const Heads<float> x = random_heads<float>(1, 4, 1, 16, 1), k = random_heads<float>(1, 4, 64, 16, 2);
  Heads<float> out = x;
  for (int i = 0; i < 1000000 && two.items_of_worker == 0; ++i) {
    attention(out.view(), x.view(), k.view(), k.view(), {}, {.threads = 2, .pool = two.pool()});
  }
  ASSERT_GT(two.items_of_worker, 0);
}

}  // namespace posenc::tests
