/* What headers and libraries of the compiler use of a glibc newer than the one that wheels are linked for (old_glibc.py). The linker
 * takes from here only what it finds missing, and reports what is missing here too. */
#define HIDDEN __attribute__((visibility("hidden")))

/* 2.32: true while a process has one thread, so that shared_ptr may count without atomic operations. False is always right. */
HIDDEN char __libc_single_threaded = 0;

/* 2.38: strtol and its kind for C23, which accept 0b… where the base is 0 or 2. Nothing of ours relies on that. */
long old_strtol(const char* text, char** end, int base) __asm__("strtol");
unsigned long old_strtoul(const char* text, char** end, int base) __asm__("strtoul");
long long old_strtoll(const char* text, char** end, int base) __asm__("strtoll");
unsigned long long old_strtoull(const char* text, char** end, int base) __asm__("strtoull");
HIDDEN long __isoc23_strtol(const char* text, char** end, int base) { return old_strtol(text, end, base); }
HIDDEN unsigned long __isoc23_strtoul(const char* text, char** end, int base) { return old_strtoul(text, end, base); }
HIDDEN long long __isoc23_strtoll(const char* text, char** end, int base) { return old_strtoll(text, end, base); }
HIDDEN unsigned long long __isoc23_strtoull(const char* text, char** end, int base) {
  return old_strtoull(text, end, base);
}
