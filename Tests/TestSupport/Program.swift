import Foundation
import Postgres
import Subprocess
import SystemPackage

/// A program that runs as a separate process. Its output is kept.
public final class Program: Sendable {
  /// The output, and the exit status once it has ended. Foundation's `Process` is not usable here: it crashes when a
  /// test has more than a thousand open files, because it reads beyond its list of them.
  private let state = Lock((out: [UInt8](), err: [UInt8](), end: Int32?.none))
  public let pid: Int32

  /// The checkout that these tests were built from.
  public static let checkout = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The path of the built executable with this name.
  public static func path(_ name: String) -> String {
    let beside = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: name).path
    return FileManager.default.isExecutableFile(atPath: beside)
      ? beside : checkout.appending(path: ".build/debug/\(name)").path
  }

  /// - Parameter environment: added to a minimal environment, so that no settings of this process leak in.
  public init(
    _ executable: String, _ arguments: [String], environment: [String: String] = [:], in folder: String? = nil
  ) async throws {
    let own = ProcessInfo.processInfo.environment
    let all = [
      "PATH": own["PATH"] ?? "/usr/bin:/bin", "HOME": own["HOME"] ?? "/", "TMPDIR": own["TMPDIR"] ?? "/tmp",
      "SWIFT_BACKTRACE": "enable=no", "LANG": "C.UTF-8", "TSAN_OPTIONS": own["TSAN_OPTIONS"] ?? "",
      "MUSTER_PG_BIN": own["MUSTER_PG_BIN"] ?? "",
    ].merging(environment) { $1 }
    let (pids, started) = AsyncThrowingStream<Int32, any Error>.makeStream()
    Task.detached { [state] in
      do {
        let result = try await Subprocess.run(
          .path(FilePath(executable)), arguments: Arguments(arguments),
          environment: .custom(Dictionary(uniqueKeysWithValues: all.map { (Environment.Key(stringLiteral: $0), $1) })),
          workingDirectory: folder.map { FilePath($0) }, input: .none, output: .sequence, error: .sequence
        ) { process in
          started.yield(process.processIdentifier.value)
          async let err: Void = {
            for try await part in process.standardError {
              state.withLock { $0.err += part.withUnsafeBytes(Array.init) }
            }
          }()
          for try await part in process.standardOutput {
            state.withLock { $0.out += part.withUnsafeBytes(Array.init) }
          }
          try await err
        }
        let end =
          switch result.terminationStatus {
          case .exited(let code): code
          case .signaled(let number): -number
          }
        state.withLock { $0.end = end }
        started.finish()
      } catch {
        state.withLock {
          $0.err += "\(error)".utf8
          $0.end = .min
        }
        started.finish(throwing: error)
      }
    }
    // Detached: even if this task is cancelled, the process id must be known to end the process.
    let pid = try await Task.detached { try await pids.first { _ in true } }.value
    guard let pid else { throw Unexpected("the program has no process") }
    self.pid = pid
  }

  public var standardOutput: String { String(decoding: state.withLock { $0.out }, as: UTF8.self) }
  public var standardError: String { String(decoding: state.withLock { $0.err }, as: UTF8.self) }
  public var isRunning: Bool { state.withLock { $0.end == nil } }

  public func signal(_ number: Int32) {
    guard isRunning else { return }
    kill(pid, number)
  }

  /// Ends the process with SIGTERM, and with SIGKILL after two seconds. Blocks, so use it only when this process exits.
  public func end() {
    signal(SIGTERM)
    for _ in 0..<100 where isRunning { usleep(20_000) }
    signal(SIGKILL)
  }

  /// Waits for the process to end.
  ///
  /// - Returns: its exit status, or the negated number of the signal that killed it.
  public func exitStatus(within limit: Duration = .seconds(60)) async throws -> Int32 {
    try await eventually(within: limit) { !isRunning }
    return state.withLock { $0.end ?? .min }
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
