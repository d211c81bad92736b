// For O_PATH and CLONE_THREAD.
#define _GNU_SOURCE
#include "containment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

void containment_forget(const char *name) {
  size_t length = strlen(name);
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
    if (strncmp(*entry, name, length) != 0 || (*entry)[length] != '=') continue;
    // Volatile, so that the compiler does not leave out writes that nothing reads.
    for (volatile char *byte = *entry + length + 1; *byte != 0; byte++) *byte = 0;
  }
  unsetenv(name);
}

#ifdef __linux__

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int containment_hide(void) {
  return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno;
}

// The system calls themselves: libc's functions ask all threads to do the same.
int containment_become(uint32_t user, uint32_t group) {
  if (syscall(SYS_setgroups, 0, NULL) != 0) return errno;
  if (syscall(SYS_setresgid, group, group, group) != 0) return errno;
  if (syscall(SYS_setresuid, user, user, user) != 0) return errno;
  return 0;
}

int containment_drop_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
  // What is neither permitted nor inheritable leaves the ambient set, too.
  return syscall(SYS_capset, &header, none) == 0 ? 0 : errno;
}

// MARK: Landlock. Its numbers are the same on every processor, and newer than some headers.

enum {
  landlock_create_ruleset = 444, landlock_add_rule = 445, landlock_restrict_self = 446,
};

enum {
  file_execute = 1 << 0, file_read = 1 << 2, folder_read = 1 << 3,
  // The others are to write, to remove and to make files of all kinds.
  all_of_version_1 = (1 << 13) - 1,
  link_elsewhere = 1 << 13, truncate_file = 1 << 14, control_device = 1 << 15,
};

struct landlock_rights {
  uint64_t files;
  uint64_t network;
  uint64_t scopes;
};

struct landlock_path {
  uint64_t allowed;
  int32_t parent;
} __attribute__((packed));

int containment_landlock_version(void) {
  long version = syscall(landlock_create_ruleset, NULL, 0, 1);
  return version > 0 ? (int)version : 0;
}

static int allow(int rules, const char *path) {
  int file = open(path, O_PATH | O_CLOEXEC);
  if (file < 0) return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : errno;
  struct stat info;
  int error = fstat(file, &info) == 0 ? 0 : errno;
  if (error == 0) {
    uint64_t rights = file_execute | file_read | (S_ISDIR(info.st_mode) ? folder_read : 0);
    struct landlock_path rule = {.allowed = rights, .parent = file};
    if (syscall(landlock_add_rule, rules, 1, &rule, 0) != 0) error = errno;
  }
  close(file);
  return error;
}

int containment_keep_files(const char *const *readable, size_t count) {
  int version = containment_landlock_version();
  struct landlock_rights handled = {.files = all_of_version_1};
  size_t size = sizeof(uint64_t);
  if (version >= 2) handled.files |= link_elsewhere;
  if (version >= 3) handled.files |= truncate_file;
  if (version >= 5) handled.files |= control_device;
  // TCP, then abstract sockets and signals: seccomp also denies them, where the kernel has it.
  if (version >= 4) handled.network = 3, size = 2 * sizeof(uint64_t);
  if (version >= 6) handled.scopes = 3, size = 3 * sizeof(uint64_t);
  int rules = (int)syscall(landlock_create_ruleset, &handled, size, 0);
  if (rules < 0) return errno;
  int error = 0;
  for (size_t i = 0; i < count && error == 0; i++) error = allow(rules, readable[i]);
  if (error == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) error = errno;
  if (error == 0 && syscall(landlock_restrict_self, rules, 0) != 0) error = errno;
  close(rules);
  return error;
}

// MARK: seccomp

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

bool containment_has_seccomp(void) {
#ifdef OWN_ARCHITECTURE
  uint32_t action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
#else
  return false;
#endif
}

#ifdef OWN_ARCHITECTURE

/// Calls with a higher number are newer than this list, and could do what it denies.
static const uint32_t newest_call = 450;

static const uint32_t denied_calls[] = {
  // The network. What is left are the pipes that the process begins with.
  SYS_socket, SYS_socketpair, SYS_io_uring_setup,
  // New processes, except for threads: see below.
#ifdef SYS_fork
  SYS_fork, SYS_vfork,
#endif
  // Other processes of the same account.
  SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal, SYS_pidfd_open,
  SYS_pidfd_getfd, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_kcmp,
  SYS_setpriority, SYS_ioprio_set, SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam,
  SYS_sched_setscheduler, SYS_migrate_pages, SYS_move_pages,
  // What they share. The numbers of System V's objects can be guessed, so that making none is not enough.
  SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl, SYS_msgget, SYS_msgsnd,
  SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_add_key, SYS_request_key, SYS_keyctl,
  // The kernel's less used doors.
  SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_bpf, SYS_perf_event_open,
  SYS_userfaultfd, SYS_open_by_handle_at,
  // Changes of files. Landlock does not know those of attributes.
  SYS_openat2, SYS_truncate, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_setxattr,
  SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_unlinkat, SYS_renameat2,
  SYS_mkdirat, SYS_mknodat, SYS_linkat, SYS_symlinkat,
#ifdef SYS_renameat
  SYS_renameat,
#endif
#ifdef SYS_creat
  SYS_creat, SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat, SYS_unlink, SYS_rename, SYS_mkdir,
  SYS_rmdir, SYS_mknod, SYS_link, SYS_symlink,
#endif
};

enum { denied_count = sizeof(denied_calls) / sizeof(denied_calls[0]) };

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(answer) BPF_STMT(BPF_RET | BPF_K, (answer))
#define DENIED(error) (SECCOMP_RET_ERRNO | (error))
/// Skips `count` instructions unless the loaded value is this one.
#define UNLESS_EQUAL(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
#define UNLESS_HAS(bits, count) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, (count))

int containment_deny_calls(void) {
  const uint32_t own = (uint32_t)getpid();
  // Linux's processors here are little-endian: the lower half of an argument comes first.
  const uint32_t changing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  struct sock_filter filter[64 + 2 * denied_count];
  size_t count = 0;
#define ADD(...) do { \
    const struct sock_filter part[] = {__VA_ARGS__}; \
    memcpy(filter + count, part, sizeof(part)); \
    count += sizeof(part) / sizeof(part[0]); \
  } while (0)

  // Calls in the manner of another processor have other numbers.
  ADD(LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0), ANSWER(DENIED(EPERM)));
  ADD(LOAD(nr));
  // libc then uses `clone`, whose flags can be read.
  ADD(UNLESS_EQUAL(SYS_clone3, 1), ANSWER(DENIED(ENOSYS)));
  ADD(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, newest_call, 0, 1), ANSWER(DENIED(ENOSYS)));
  for (size_t i = 0; i < denied_count; i++) ADD(UNLESS_EQUAL(denied_calls[i], 1), ANSWER(DENIED(EPERM)));
  ADD(UNLESS_EQUAL(SYS_clone, 4), LOAD(args[0]), UNLESS_HAS(CLONE_THREAD, 1), ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(DENIED(EPERM)));
  // Signals and limits of itself.
  ADD(UNLESS_EQUAL(SYS_tgkill, 4), LOAD(args[0]), UNLESS_EQUAL(own, 1), ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(DENIED(EPERM)));
  ADD(UNLESS_EQUAL(SYS_prlimit64, 5), LOAD(args[0]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
    UNLESS_EQUAL(own, 1), ANSWER(SECCOMP_RET_ALLOW), ANSWER(DENIED(EPERM)));
  // A pipe can send any signal to any process that is named as its owner.
  ADD(UNLESS_EQUAL(SYS_fcntl, 6), LOAD(args[1]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETOWN, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETOWN_EX, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETSIG, 0, 1),
    ANSWER(DENIED(EPERM)), ANSWER(SECCOMP_RET_ALLOW));
  ADD(UNLESS_EQUAL(SYS_openat, 4), LOAD(args[2]), UNLESS_HAS(changing, 1), ANSWER(DENIED(EACCES)),
    ANSWER(SECCOMP_RET_ALLOW));
#ifdef SYS_open
  ADD(UNLESS_EQUAL(SYS_open, 4), LOAD(args[1]), UNLESS_HAS(changing, 1), ANSWER(DENIED(EACCES)),
    ANSWER(SECCOMP_RET_ALLOW));
#endif
  ADD(ANSWER(SECCOMP_RET_ALLOW));
#undef ADD

  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : errno;
}

#else

int containment_deny_calls(void) { return ENOSYS; }

#endif

#else

int containment_hide(void) { return 0; }
int containment_landlock_version(void) { return 0; }
bool containment_has_seccomp(void) { return false; }
int containment_become(uint32_t user, uint32_t group) { return ENOSYS; }
int containment_drop_capabilities(void) { return ENOSYS; }
int containment_keep_files(const char *const *readable, size_t count) { return ENOSYS; }
int containment_deny_calls(void) { return ENOSYS; }

#endif
