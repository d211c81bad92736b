import NIOCore
import Synchronization

/// Decides which new connections stay, so that neither one client nor all of them together take what the process needs
/// for its database and files.
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
  /// They bring many clients' requests.
  private let exempt: TrustedProxies
  private let state = Mutex(State())
  private let refusals: [Refusal: CounterCell]
  let failures: CounterCell

  /// - Parameter limitPerAddress: 0 for none.
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
    metrics.watch("muster_connections", "Connections of clients that are open.") { [weak self] in
      Double(self?.open ?? 0)
    }
  }

  var open: Int { state.withLock { $0.total } }

  /// Counts a connection until ``leave(_:)``, unless it is one too many.
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

  /// - Parameter address: the same as when it entered.
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

  /// What the process needs besides its clients' connections: standard streams, event loops, listeners, files, and
  /// connections to webhooks and providers.
  private static let filesOfItsOwn = 96

  /// How many clients' connections the limit of open files leaves room for.
  ///
  /// - Parameter pool: connections for transactions; there are others beside them.
  static func limit(files: Int, pool: Int) -> Int {
    max(files / 4, files - filesOfItsOwn - 2 * pool)
  }
}
