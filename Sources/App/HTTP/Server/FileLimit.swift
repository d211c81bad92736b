import Foundation

/// How many files and sockets this process may have open.
public enum FileLimit {
  /// More than any service needs. A limit, because some libraries iterate over every possible file descriptor.
  private static let highest: rlim_t = 1 << 20

  #if canImport(Darwin)
    private static let resource = RLIMIT_NOFILE
  #else
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #endif

  static var current: Int {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return 256 }
    return Int(clamping: limit.rlim_cur)
  }

  /// Whether this many more files can be opened now. Other threads may take them at any moment.
  static func hasRoom(for count: Int) -> Bool {
    var files: [Int32] = []
    defer { for file in files { close(file) } }
    while files.count < count {
      let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { return false }
      files.append(file)
    }
    return true
  }

  /// Raises the soft limit, which is often 1024, to the hard limit. If the system refuses, the limit does not change.
  public static func raise() {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return }
    let target = min(limit.rlim_max, highest)
    guard limit.rlim_cur < target else { return }
    limit.rlim_cur = target
    _ = setrlimit(resource, &limit)
  }
}
