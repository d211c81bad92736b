import HTTPServer
import Logging
import Synchronization

/// Logs requests. A line never contains a name, a path, a query or a body.
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
  ///   - problem: the refusal that the client gets, if any.
  ///   - cause: the error behind it, which the client does not see.
  func responded(
    _ method: HTTPRequest.Method, _ status: Int, _ problem: AppError?, cause: (any Error)?, after duration: Duration,
    in context: Context
  ) {
    if status < 400, isOut.load(ordering: .relaxed), context.showsHealth { recovered(context.logger) }
    guard logsAll || status >= 500 else { return }
    var metadata: Logger.Metadata = [
      "method": "\(method)", "route": "\(context.endpoint?.path ?? "none")", "status": .stringConvertible(status),
      "duration_ms": .stringConvertible(duration.roundedMilliseconds),
    ]
    if let problem { metadata["problem"] = "\(problem.slug)" }
    if let cause { metadata["error"] = "\(cause)" }
    let (caller, subject) = (context.caller, context.subject)
    if let user = caller?.user ?? subject.user { metadata["user"] = "\(user)" }
    if let session = caller?.session ?? subject.session { metadata["session"] = "\(session)" }
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
  /// Whether a success shows that the process works: the caller is known, or the request is a readiness check.
  fileprivate var showsHealth: Bool { caller != nil || endpoint?.path == "/health/ready" }
}

extension Duration {
  /// Milliseconds, cut to three decimal places.
  fileprivate var roundedMilliseconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) * 1000 + Double(attoseconds / 1_000_000_000_000) / 1000
  }
}
