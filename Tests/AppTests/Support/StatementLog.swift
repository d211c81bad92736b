import Logging
import Synchronization

@testable import App

/// Hears of every statement that a service sends to its database.
final class StatementLog: Sendable {
  private let texts = Mutex<[String]>([])

  /// Runs a service whose statements are all heard.
  static func run(_ body: @escaping @Sendable (TestApp, StatementLog) async throws -> Void) async throws {
    let log = StatementLog()
    let logger = Logger(label: "statements") { _ in Handler(kept: log) }
    // All statements are slow.
    try await TestApp.run(logger: logger, slowStatement: .seconds(-1)) { try await body($0, log) }
  }

  /// What is sent while `action` runs, by whomever. What a transaction begins and ends with does not count, nor what
  /// looks after ended sessions all the time.
  func statements(during action: () async throws -> Void) async rethrows -> [String] {
    texts.withLock { $0 = [] }
    try await action()
    return texts.withLock { $0 }
  }

  fileprivate func hear(_ batch: String) {
    let statements = batch.split(separator: "; ").map(String.init).filter {
      !$0.contains("ended_at") && !["BEGIN", "COMMIT", "ROLLBACK"].contains($0)
    }
    texts.withLock { $0 += statements }
  }

  private struct Handler: LogHandler {
    let kept: StatementLog
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      guard event.message == "slow statement", let statement = event.metadata?["statement"] else { return }
      kept.hear("\(statement)")
    }
  }
}
