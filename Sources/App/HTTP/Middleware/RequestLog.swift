import HTTPTypes
import Hummingbird
import Logging
import Synchronization

/// Which requests are logged, and what of them: never a name, a path, a query or a body.
final class RequestLog: Sendable {
  private let logsAll: Bool
  private let logsAddresses: Bool
  private let outages = Mutex(Outages())
  private let isOut = Atomic(false)

  init(all: Bool, addresses: Bool) {
    logsAll = all
    logsAddresses = addresses
  }

  /// - Parameters:
  ///   - problem: what the client was told, if it was refused.
  ///   - cause: what it was not told.
  func answered(
    _ method: HTTPRequest.Method, _ status: Int, _ problem: AppError?, cause: (any Error)?, after duration: Duration,
    in context: Context
  ) {
    if status < 400, isOut.load(ordering: .relaxed), context.showsHealth { recovered(context.logger) }
    guard logsAll || status >= 500 else { return }
    var metadata: Logger.Metadata = [
      "method": "\(method)", "route": "\(context.endpointPath ?? "none")", "status": .stringConvertible(status),
      "duration_ms": .stringConvertible(duration.roundedMilliseconds),
    ]
    if let problem { metadata["problem"] = "\(problem.slug)" }
    if let cause { metadata["error"] = "\(cause)" }
    if let caller = context.caller {
      metadata["user"] = "\(caller.user)"
      metadata["session"] = "\(caller.session)"
    }
    if logsAddresses { metadata["address"] = "\(context.address)" }
    if status == 503, let problem {
      let count = outages.withLock { $0.failed(problem.slug, at: .now) }
      isOut.store(true, ordering: .relaxed)
      guard logsAll || count != nil else { return }
      if let count, count > 1 { metadata["repeated"] = .stringConvertible(count) }
    }
    let level: Logger.Level = status == 500 ? .error : status > 500 ? .warning : .info
    context.logger.log(level: level, "request", metadata: metadata)
  }

  private func recovered(_ logger: Logger) {
    let ended = outages.withLock { outages in
      defer { isOut.store(!outages.isEmpty, ordering: .relaxed) }
      return outages.succeeded(at: .now)
    }
    for outage in ended {
      logger.notice(
        "recovered",
        metadata: [
          "problem": "\(outage.problem)", "failures": .stringConvertible(outage.failures),
          "duration_ms": .stringConvertible(outage.duration.roundedMilliseconds),
        ])
    }
  }
}

extension Context {
  /// Whether a success tells that the process can do its work: it is known who is signed in, or it was asked.
  fileprivate var showsHealth: Bool { caller != nil || endpointPath == "/health/ready" }
}

extension Duration {
  /// With three digits of fraction.
  fileprivate var roundedMilliseconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) * 1000 + Double(attoseconds / 1_000_000_000_000) / 1000
  }
}
