import Synchronization

/// Limits open connections, so that clients, alone or together, cannot use up what the process needs for its database
/// and files. It counts by network, and trusted proxies only in total; limits of users are another module's, whose places
/// end with the work that holds them.
public final class ConnectionGate: Sendable {
  /// A limit that refuses connections.
  public enum Limit: String, CaseIterable, Sendable {
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
  private let onRefusal: @Sendable (Limit) -> Void
  private let onFailure: @Sendable () -> Void

  /// - Parameters:
  ///   - limitPerAddress: 0 for no limit.
  ///   - onRefusal: called for each connection that is refused.
  ///   - onFailure: called when the system cannot accept a connection.
  public init(
    limit: Int, limitPerAddress: Int = 0, exempt: TrustedProxies = TrustedProxies(),
    onRefusal: @escaping @Sendable (Limit) -> Void = { _ in }, onFailure: @escaping @Sendable () -> Void = {}
  ) {
    self.limit = limit
    self.limitPerAddress = limitPerAddress
    self.exempt = exempt
    self.onRefusal = onRefusal
    self.onFailure = onFailure
  }

  /// The number of open connections.
  public var open: Int { state.withLock { $0.total } }

  /// Counts a connection until ``leave(_:)``, or returns the limit that refuses it.
  func enter(_ address: IPAddress?) -> Limit? {
    let network = counted(address)
    let exceeded = state.withLock { state -> Limit? in
      guard state.total < limit else { return .total }
      if let network {
        guard state.perNetwork[network, default: 0] < limitPerAddress else { return .address }
        state.perNetwork[network, default: 0] += 1
      }
      state.total += 1
      return nil
    }
    if let exceeded { onRefusal(exceeded) }
    return exceeded
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

  /// The system cannot accept a connection.
  func failed() { onFailure() }

  /// Nil for an address whose connections are not limited.
  private func counted(_ address: IPAddress?) -> String? {
    guard limitPerAddress > 0, let address, !exempt.contains(address) else { return nil }
    return address.network
  }
}
