import HTTPServer

extension ConnectionGate {
  convenience init(_ dependencies: Dependencies) {
    self.init(
      limit: dependencies.maximumConnections, limitPerAddress: dependencies.connectionsPerAddress,
      exempt: dependencies.trustedProxies, metrics: dependencies.metrics)
  }

  /// - Parameters:
  ///   - limitPerAddress: 0 for no limit.
  ///   - exempt: the proxies that carry the requests of many clients.
  convenience init(
    limit: Int, limitPerAddress: Int, exempt: TrustedProxies = TrustedProxies(), metrics: MetricsRegistry
  ) {
    let refusals = Dictionary(
      uniqueKeysWithValues: Limit.allCases.map {
        let labels = [("limit", $0.rawValue)]
        return ($0, metrics.cell("muster_connections_refused_total", labels, of: CounterCell.self))
      })
    let failures = metrics.cell("muster_accept_failures_total", of: CounterCell.self)
    self.init(
      limit: limit, limitPerAddress: limitPerAddress, exempt: exempt,
      onRefusal: { refusals[$0]?.increment(by: 1) }, onFailure: { failures.increment(by: 1) })
    metrics.watch("muster_connections", "Open client connections.") { [weak self] in Double(self?.open ?? 0) }
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

extension MusterConfiguration {
  /// - Throws: ``Problem`` if clients could use up the files that the process needs itself.
  public func refuseMoreConnectionsThanFiles() throws(Problem) {
    guard let maximumConnections else { return }
    let files = FileLimit.current
    let most = ConnectionGate.limit(files: files, pool: poolSize)
    guard maximumConnections > most else { return }
    let name = Variable.table.maximumConnections.name
    throw Problem(
      "\(name) is \(maximumConnections), but a limit of \(files) open files leaves room for "
        + "\(most) connections: lower it, or raise the limit (ulimit -n)")
  }
}
