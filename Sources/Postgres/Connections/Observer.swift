import Logging
import Metrics

/// Reports statements and connections to metrics and the log. Labels follow Prometheus conventions: seconds, totals.
final class Observer: Sendable {
  private let logger: Logger
  private let slow: Duration
  private let statements = Timer(label: "postgres_statement_seconds")
  private let waits = Timer(label: "postgres_pool_wait_seconds")
  private let opens = Counter(label: "postgres_connections_opened_total")
  private let closes = Counter(label: "postgres_connections_closed_total")
  private let waiting = Gauge(label: "postgres_pool_waiting")
  private let taken = Gauge(label: "postgres_pool_connections_taken")

  init(logger: Logger, slow: Duration) {
    self.logger = logger
    self.slow = slow
  }

  func opened() {
    opens.increment()
  }

  func closed() {
    closes.increment()
  }

  func waited(_ duration: Duration) {
    waits.recordNanoseconds(duration.nanoseconds)
  }

  func note(_ load: (waiting: Int, taken: Int)) {
    waiting.record(load.waiting)
    taken.record(load.taken)
  }

  /// Records a finished batch. Parameters are never logged.
  func finished(_ texts: some Sequence<String>, after duration: Duration) {
    statements.recordNanoseconds(duration.nanoseconds)
    logger.debug("statements", metadata: ["statements": .array(texts.map { .string($0) })])
    guard duration > slow else { return }
    logger.warning(
      "slow statement",
      metadata: [
        "duration_ms": .stringConvertible(duration.wholeMilliseconds),
        "statement": "\(texts.joined(separator: "; ").prefix(1000))",
      ])
  }
}

extension Duration {
  fileprivate var nanoseconds: Int64 {
    components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
  }
}
