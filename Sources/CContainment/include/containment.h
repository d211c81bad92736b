/// The system calls of `Containment.swift` that Swift cannot make: variadic ones, and those without a function in libc.
/// On other systems than Linux, each does nothing or returns ENOSYS.

#ifndef CONTAINMENT_H
#define CONTAINMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Makes the memory and environment of this process unreadable for others of its account. Returns 0 or an errno.
int containment_hide(void);

/// Overwrites the value of an environment variable where the kernel shows it, and removes the variable.
void containment_forget(const char *name);

/// The version of Landlock's interface; 0 if this kernel has no Landlock.
int containment_landlock_version(void);

/// Whether this kernel filters system calls, and the filter is written for this processor.
bool containment_has_seccomp(void);

/// Changes to another account without groups, for good. Returns 0 or an errno.
int containment_become(uint32_t user, uint32_t group);

/// Gives up all capabilities, also the ambient ones, which a supervisor may have given to this account and its programs.
/// Returns 0 or an errno.
int containment_drop_capabilities(void);

/// Leaves this thread, and the program that it executes, only these files and folders, to read and execute. A missing
/// one is skipped. Returns 0 or an errno.
int containment_keep_files(const char *const *readable, size_t count);

/// Denies this thread, and the program that it executes, sockets, new processes, signals to others, and all changes of
/// files. Threads and `execve` stay possible. Returns 0 or an errno.
int containment_deny_calls(void);

#endif
