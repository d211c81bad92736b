import Foundation
import Postgres

/// A program of this package, running as a process of its own: what it prints is kept, line by line.
public final class Program: Sendable {
  private let process: Lock<Process>
  private let output = Lock((out: "", err: ""))
  public let pid: Int32

  /// The checkout that these tests were built from.
  public static let checkout = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The built executable of this name.
  public static func path(_ name: String) -> String {
    let beside = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: name).path
    return FileManager.default.isExecutableFile(atPath: beside)
      ? beside : checkout.appending(path: ".build/debug/\(name)").path
  }

  /// - Parameter environment: added to a small one: none of this process's own settings leak in.
  public init(
    _ executable: String, _ arguments: [String], environment: [String: String] = [:], in folder: String? = nil
  ) throws {
    let process = Process()
    process.executableURL = URL(filePath: executable)
    process.arguments = arguments
    let own = ProcessInfo.processInfo.environment
    process.environment = [
      "PATH": own["PATH"] ?? "/usr/bin:/bin", "HOME": own["HOME"] ?? "/", "TMPDIR": own["TMPDIR"] ?? "/tmp",
      "SWIFT_BACKTRACE": "enable=no", "LANG": "C.UTF-8",
    ].merging(environment) { $1 }
    if let folder { process.currentDirectoryURL = URL(filePath: folder) }
    let (out, err) = (Pipe(), Pipe())
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = out
    process.standardError = err
    do {
      // A thread of Swift's keeps signals blocked, and its child would be deaf to them all its life.
      var none = sigset_t()
      var blocked = sigset_t()
      sigemptyset(&none)
      pthread_sigmask(SIG_SETMASK, &none, &blocked)
      defer { pthread_sigmask(SIG_SETMASK, &blocked, nil) }
      try process.run()
    }
    pid = process.processIdentifier
    self.process = Lock(process)
    collect(out) { $0.out += $1 }
    collect(err) { $0.err += $1 }
  }

  private func collect(_ pipe: Pipe, _ append: @escaping @Sendable (inout (out: String, err: String), String) -> Void) {
    Thread.detachNewThread { [self] in
      while case let data = pipe.fileHandleForReading.availableData, !data.isEmpty {
        output.withLock { append(&$0, String(decoding: data, as: UTF8.self)) }
      }
    }
  }

  public var standardOutput: String { output.withLock { $0.out } }
  public var standardError: String { output.withLock { $0.err } }
  public var isRunning: Bool { process.withLock { $0.isRunning } }

  public func signal(_ number: Int32) {
    guard isRunning else { return }
    kill(pid, number)
  }

  /// Ends the process, by force if it has not gone two seconds after it was asked to. Blocks: for when this process ends.
  public func end() {
    signal(SIGTERM)
    for _ in 0..<100 where isRunning { usleep(20_000) }
    signal(SIGKILL)
  }

  /// Waits for the process to end by itself.
  ///
  /// - Returns: its exit status, or the negated number of the signal that killed it.
  public func exitStatus(within limit: Duration = .seconds(60)) async throws -> Int32 {
    try await eventually(within: limit) { !isRunning }
    // What it printed last may still be in the pipe.
    try await Task.sleep(for: .milliseconds(50))
    return process.withLock { $0.terminationReason == .exit ? $0.terminationStatus : -$0.terminationStatus }
  }

  /// Waits until standard output or standard error contains a text.
  public func waitForOutput(_ text: String, within limit: Duration = .seconds(60)) async throws {
    try await eventually(within: limit) {
      if standardOutput.contains(text) || standardError.contains(text) { return true }
      if !isRunning { throw Unexpected("the program ended: \(standardError) \(standardOutput)") }
      return false
    }
  }
}

public struct Unexpected: Error, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}

/// Looks again and again until `condition` holds.
public func eventually(
  within limit: Duration = .seconds(10), _ condition: () async throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while try await !condition() {
    guard ContinuousClock.now < deadline else { throw Unexpected("not within \(limit)") }
    try await Task.sleep(for: .milliseconds(20))
  }
}
