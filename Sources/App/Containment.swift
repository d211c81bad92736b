import CContainment
import Foundation

/// Keeps the secrets of this process from others, and sandboxes programs that read input from strangers.
///
/// A contained program runs at low priority, with limits of memory, time and threads. It has no network, starts no
/// processes, writes no files, and reads only those of the system. See docs/deploying.md for what holds on which
/// system.
public enum Containment {
  /// The command of `muster` that contains a program.
  public static let command = "contained"

  // MARK: This process

  /// Must come first in a program: what a process inherits may be anything.
  public static func begin() {
    // Other processes of the same account can no longer read this one's memory and environment.
    _ = containment_hide()
    // If the parent ignores SIGCHLD, so do we, and the system does not tell how our own children ended.
    _ = signal(SIGCHLD, SIG_DFL)
    // Otherwise the first sockets get these numbers, and messages go to them.
    for file in 0...2 as ClosedRange<Int32> where fcntl(file, F_GETFD) == -1 { _ = open("/dev/null", O_RDWR) }
  }

  /// Overwrites the values of all secret variables in this process's environment, where the kernel shows them to
  /// administrators, and from where children inherit them.
  public static func forgetSecrets() {
    for variable in Variable.all where variable.isSecret { containment_forget(variable.name) }
  }

  // MARK: Contained programs

  /// The executable of this process.
  static var launcher: String {
    #if os(Linux)
      // Still there after an upgrade has replaced the file.
      "/proc/self/exe"
    #else
      Bundle.main.executablePath ?? CommandLine.arguments[0]
    #endif
  }

  /// The restrictions on a program, and this machine's mechanism for each: nil if there is none.
  static var measures: [(of: String, by: String?)] {
    #if os(Linux)
      let version = containment_landlock_version()
      let calls = containment_has_seccomp() ? "seccomp" : nil
      return [("network", calls), ("processes", calls), ("files", version > 0 ? "landlock \(version)" : nil)]
    #else
      [("network", "sandbox-exec"), ("processes", "sandbox-exec"), ("files", nil)]
    #endif
  }

  /// Bytes of address space. With Debian 12's libvips, the most demanding pictures of 4096 by 4096 pixels need 250 MiB
  /// (PNG, WebP), 300 MiB (interlaced PNG of 16 bits) and 400 MiB (HEIC).
  private static let memory: rlim_t = 768 << 20
  /// The same pictures need one second of processor time. A program that exceeds the soft limit gets SIGXCPU, which can
  /// be distinguished from the kernel's out-of-memory kill.
  private static let processorSeconds: rlim_t = 10
  private static let openFiles: rlim_t = 64
  private static let threads: rlim_t = 64
  private static let niceness: Int32 = 10
  /// Everywhere the account without rights. Root, whom most limits do not bind, changes to it.
  private static let nobody: UInt32 = 65_534

  /// Programs and their libraries, in the places of Debian, Fedora, Nix, Guix and Homebrew.
  private static let readable = [
    "/usr", "/bin", "/lib", "/lib64", "/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew", "/etc/ld.so.cache",
    "/sys/devices/system/cpu", "/dev/null", "/dev/urandom",
  ]

  /// Replaces this process by a contained program. Returns only if that fails, with the reason.
  ///
  /// - Parameter command: the path of the program, and its arguments.
  public static func replaceProcess(by command: [String]) -> String {
    guard let program = command.first, program.hasPrefix("/") else { return "the path of a program is missing" }
    // The limit of threads counts all of the account's. As many as the whole system has are never too few.
    let present = (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8))
      .flatMap { $0.firstMatch(of: /\d+\/(\d+)/) }.flatMap { rlim_t($0.1) }
    _ = nice(niceness)
    #if os(Linux)
      if let reason = restrict(program) { return reason }
      var arguments = command.map { strdup($0) } + [nil]
    #else
      let profile = "(version 1)(allow default)(deny network*)(deny process-fork)(deny file-write*)"
      var arguments = (["/usr/bin/sandbox-exec", "-p", profile] + command).map { strdup($0) } + [nil]
    #endif
    limit(RLIMIT_CORE, 0)
    limit(RLIMIT_FSIZE, 0)
    limit(RLIMIT_NOFILE, openFiles)
    limit(Self.threadsOfAccount, (present ?? 4096) + threads)
    limit(RLIMIT_CPU, processorSeconds, processorSeconds + 1)
    #if os(Linux)
      // macOS has no such limit.
      limit(RLIMIT_AS, memory)
    #endif
    arguments.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress, let path = start.pointee else { return }
      _ = execv(path, start)
    }
    return "cannot execute \(program): \(String(cString: strerror(errno)))"
  }

  #if os(Linux)
    /// Nil if everything that this system has was applied.
    private static func restrict(_ program: String) -> String? {
      func reason(_ what: String, _ error: Int32) -> String? {
        error == 0 ? nil : "cannot \(what): \(String(cString: strerror(error)))"
      }
      if geteuid() == 0, let reason = reason("change to account \(nobody)", containment_become(nobody, nobody)) {
        return reason
      }
      if let reason = reason("drop capabilities", containment_drop_capabilities()) { return reason }
      if containment_landlock_version() > 0 {
        let readable = (readable + [program]).map { UnsafePointer(strdup($0)) }
        if let reason = reason("restrict files", containment_keep_files(readable, readable.count)) { return reason }
      }
      return containment_has_seccomp() ? reason("restrict system calls", containment_deny_calls()) : nil
    }
  #endif

  #if canImport(Darwin)
    private typealias Resource = Int32
    private static let threadsOfAccount = RLIMIT_NPROC
  #else
    private typealias Resource = __rlimit_resource
    private static let threadsOfAccount = __RLIMIT_NPROC
  #endif

  /// Lowers a limit. A lower one stays.
  private static func limit(_ resource: Resource, _ soft: rlim_t, _ hard: rlim_t? = nil) {
    #if canImport(Darwin)
      let number = resource
    #else
      let number = __rlimit_resource_t(resource.rawValue)
    #endif
    var present = rlimit()
    guard getrlimit(number, &present) == 0 else { return }
    var wanted = rlimit(rlim_cur: min(soft, present.rlim_max), rlim_max: min(hard ?? soft, present.rlim_max))
    _ = setrlimit(number, &wanted)
  }
}
