import NIOCore
import Synchronization

/// Limits open connections, so that clients, alone or together, cannot use up what the process needs for its database
/// and files.
final class ConnectionGate: Sendable {
  enum Refusal: String, CaseIterable {
    case total, address
  }

  private struct State {
    var total = 0
    var perNetwork: [String: Int] = [:]
  }

  private let limit: Int
  private let limitPerAddress: Int
  /// Trusted proxies carry the requests of many clients.
  private let exempt: TrustedProxies
  private let state = Mutex(State())
  private let refusals: [Refusal: CounterCell]
  let failures: CounterCell

  /// - Parameter limitPerAddress: 0 for no limit.
  init(limit: Int, limitPerAddress: Int, exempt: TrustedProxies = TrustedProxies(), metrics: MetricsRegistry) {
    self.limit = limit
    self.limitPerAddress = limitPerAddress
    self.exempt = exempt
    refusals = Dictionary(
      uniqueKeysWithValues: Refusal.allCases.map {
        let labels = [("limit", $0.rawValue)]
        return ($0, metrics.cell("muster_connections_refused_total", labels, of: CounterCell.self))
      })
    failures = metrics.cell("muster_accept_failures_total", of: CounterCell.self)
    metrics.watch("muster_connections", "Open client connections.") { [weak self] in
      Double(self?.open ?? 0)
    }
  }

  var open: Int { state.withLock { $0.total } }

  /// Counts a connection until ``leave(_:)``, or returns the limit that refuses it.
  func enter(_ address: IPAddress?) -> Refusal? {
    let network = counted(address)
    let refusal = state.withLock { state -> Refusal? in
      guard state.total < limit else { return .total }
      if let network {
        guard state.perNetwork[network, default: 0] < limitPerAddress else { return .address }
        state.perNetwork[network, default: 0] += 1
      }
      state.total += 1
      return nil
    }
    if let refusal { refusals[refusal]?.increment(by: 1) }
    return refusal
  }

  /// - Parameter address: the address that was passed to ``enter(_:)``.
  func leave(_ address: IPAddress?) {
    let network = counted(address)
    state.withLock { state in
      state.total -= 1
      guard let network, let count = state.perNetwork[network] else { return }
      state.perNetwork[network] = count > 1 ? count - 1 : nil
    }
  }

  /// Nil for an address whose connections are not limited.
  private func counted(_ address: IPAddress?) -> String? {
    guard limitPerAddress > 0, let address, !exempt.contains(address) else { return nil }
    return address.network
  }
}

extension ConnectionGate {
  convenience init(_ dependencies: Dependencies) {
    self.init(
      limit: dependencies.maximumConnections, limitPerAddress: dependencies.connectionsPerAddress,
      exempt: dependencies.trustedProxies, metrics: dependencies.metrics)
  }

  /// File descriptors that the process needs besides its clients' connections: standard streams, event loops,
  /// listeners, files, and connections to webhooks and providers.
  private static let filesOfItsOwn = 96

  /// The number of client connections for which the limit of open files leaves room.
  ///
  /// - Parameter pool: the number of database connections for transactions. Twice as many are reserved, because the
  ///   process opens others too.
  static func limit(files: Int, pool: Int) -> Int {
    max(files / 4, files - filesOfItsOwn - 2 * pool)
  }
}
