import Foundation

/// The main process of a running cluster, read from its `postmaster.pid`.
struct Postmaster: Sendable {
  let pid: pid_t
  private let status: Substring

  /// Whether it accepts connections.
  var isReady: Bool { status.hasPrefix("ready") }

  static func running(in home: ClusterFolder) async -> Postmaster? {
    let text = Files.read(home.data + "/postmaster.pid")
    guard let lines = text?.split(separator: "\n", omittingEmptySubsequences: false),
      let pid = lines.first.flatMap({ pid_t($0) }), pid > 0, await isServer(pid, of: home)
    else { return nil }
    return Postmaster(pid: pid, status: lines.count > 7 ? lines[7] : "")
  }

  /// Waits until it is ready; nil if it is shutting down or does not become ready in time.
  func whenReady(in home: ClusterFolder) async throws -> Postmaster? {
    let deadline = ContinuousClock.now + .seconds(60)
    while let now = await Self.running(in: home), !now.status.hasPrefix("stopping"), ContinuousClock.now < deadline {
      if now.isReady { return now }
      if Task.isCancelled {
        try await stop(in: home)
        throw CancellationError()
      }
      await Task.pause(.milliseconds(20))
    }
    return nil
  }

  /// Shuts it down fast, or after eight seconds without the final checkpoint. Cancelling the task has no effect.
  func stop(in home: ClusterFolder) async throws {
    try await Task.detached {
      for (signal, patience) in [(SIGINT, 8), (SIGQUIT, 7)] {
        let deadline = ContinuousClock.now + .seconds(patience)
        kill(pid, signal)
        while ContinuousClock.now < deadline {
          guard await Self.isServer(pid, of: home) else { return }
          await Task.pause(.milliseconds(20))
        }
      }
      throw EmbeddedPostgresError(
        "PostgreSQL (process \(pid)) does not stop: check its log, \(home.log), or end it with kill -9 \(pid).")
    }.value
  }

  /// Whether the process is the cluster's postmaster. After a crash, the id alone may belong to another process.
  private static func isServer(_ pid: pid_t, of home: ClusterFolder) async -> Bool {
    #if os(Linux)
      var process = stat()
      guard stat("/proc/\(pid)", &process) == 0, process.st_uid == home.account.userID else { return false }
      let arguments = Files.read("/proc/\(pid)/cmdline")?.split(separator: "\0").map(String.init) ?? []
      return arguments.contains("-D") && arguments.contains(home.data)
    #else
      let command = try? await Account.current.run("ps", ["-ww", "-o", "command=", "-p", "\(pid)"])
      return command?.output.contains(" -D \(home.data) ") ?? false
    #endif
  }
}

extension Task<Never, Never> {
  /// Sleeps, even if the task is cancelled.
  static func pause(_ duration: Duration) async {
    await Task<Void, Never>.detached { try? await Task.sleep(for: duration) }.value
  }
}
