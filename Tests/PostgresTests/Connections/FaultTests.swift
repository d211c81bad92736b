import Foundation
import Postgres
import TestSupport
import Testing

/// Calls while the network between client and server fails.
@Suite(.timeLimit(.minutes(15)))
struct FaultTests {
  /// Whether to run more rounds of the same tests.
  private static let cuts = testsAreLong ? 30_000 : 1500
  private static let patience = testsAreLong ? Duration.seconds(200) : .seconds(10)

  /// A database whose clients reach the server through a proxy.
  private func withProxy(
    seed: UInt64 = 1, clients: Int = 1, configure: (inout Database.Configuration) -> Void,
    _ body: ([Database], FaultProxy, Server, Database.Configuration) async throws -> Void
  ) async throws {
    try await TestCluster.withDatabase { url in
      let server = Server(url: url)
      try await server.script(Load.table)
      let proxy = try FaultProxy(inFrontOf: url, seed: seed)
      defer { proxy.close() }
      var configuration = Database.Configuration(url: proxy.url(for: url))
      configuration.applicationName = Server.applicationName
      configure(&configuration)
      let databases = try (0..<clients).map { _ in try Database(configuration) }
      defer { for database in databases { database.close() } }
      try await body(databases, proxy, server, configuration)
    }
  }

  /// Fails if the clients have more sessions than allowed or cannot use all of them.
  private func expectNoLeak(
    of databases: [Database], _ configuration: Database.Configuration, _ server: Server
  ) async throws {
    let bound = databases.count * (configuration.connections + configuration.sharedConnections)
    try await eventually("only the pool and the shared connections have sessions") {
      try await server.backends() <= bound
    }
    for database in databases { try await expectFullPool(of: database, connections: configuration.connections) }
    try await eventually("no session is in a transaction") { try await server.backends("state <> 'idle'") == 0 }
    #expect(try await server.backends() <= bound)
  }

  @Test func `if connections are cut at random bytes, no call hangs, gets another's result, or misreports its write`()
    async throws
  {
    try await cut(seed: 1, isCancelling: false)
  }

  @Test func `the same holds while callers are cancelled at random moments`() async throws {
    try await cut(seed: 2, isCancelling: true)
  }

  private func cut(seed: UInt64, isCancelling: Bool) async throws {
    try await withProxy(
      seed: seed, clients: 4,
      configure: {
        // At most five callers of each client want a connection, and a failure to connect delays all callers of a
        // client.
        $0.connections = 4
        $0.statementTimeout = .seconds(5)
      }
    ) { databases, proxy, server, configuration in
      let load = try await Load.run(on: databases, isCancelling: isCancelling) { load in
        try await load.recovery(within: .seconds(120))
        proxy.mode = .cut(within: 2500)
        proxy.hangUp()
        let end = ContinuousClock.now + Self.patience
        while proxy.cuts < Self.cuts, .now < end { try await Task.sleep(for: .milliseconds(50)) }
        proxy.mode = .forward
        proxy.hangUp()
        try await load.recovery(within: .seconds(120))
      }
      if testsAreLong { print("\(proxy.cuts) cuts of \(proxy.accepted) connections: \(load.summary)") }
      #expect(proxy.cuts > 100)
      try await expectNoLeak(of: databases, configuration, server)
      try await load.check(on: server, within: configuration.maximumCallTime)
    }
  }

  @Test func `if callers are cancelled at random on a slow network, no result is misdelivered and the pool recovers`()
    async throws
  {
    try await withProxy(
      configure: {
        $0.connections = 8
        $0.statementTimeout = .seconds(5)
      }
    ) { databases, proxy, server, configuration in
      // Connections are slow, and almost none lives long enough to be cut.
      proxy.mode = .cut(within: 1 << 40)
      let load = try await Load.run(on: databases, isCancelling: true) { load in
        let calls = testsAreLong ? 100_000 : 5000
        let end = ContinuousClock.now + Self.patience / 2
        while load.ended < calls, .now < end { try await Task.sleep(for: .milliseconds(50)) }
      }
      try await expectNoLeak(of: databases, configuration, server)
      try await load.check(on: server, within: configuration.maximumCallTime)
    }
  }

  @Test func `if the server falls silent, callers get errors within their deadlines, and results once it is back`()
    async throws
  {
    try await withProxy(configure: {
      $0.connections = 4
      $0.connectTimeout = .seconds(1)
      $0.acquireTimeout = .seconds(1)
      $0.statementTimeout = .seconds(1)
    }) { databases, proxy, server, configuration in
      let load = try await Load.run(on: databases) { load in
        try await load.recovery(within: .seconds(120))
        proxy.mode = .blackHole
        try await load.turn(within: configuration.maximumCallTime * 2)
        let acknowledged = load.acknowledged
        try await Task.sleep(for: .seconds(1))
        #expect(load.acknowledged == acknowledged)
        proxy.mode = .forward
        // Data sent into the black hole is lost. Connections from that time are closed when no response arrives.
        try await load.recovery(within: .seconds(15))
      }
      try await expectNoLeak(of: databases, configuration, server)
      try await load.check(on: server, within: configuration.maximumCallTime)
    }
  }

  @Test func `a read that is retried after its connection breaks has one deadline for all attempts`() async throws {
    try await withProxy(configure: {
      $0.connectTimeout = .seconds(20)
      $0.acquireTimeout = .seconds(20)
      $0.statementTimeout = .seconds(2)
    }) { databases, proxy, _, _ in
      let database = databases[0]
      try await database.rows("SELECT 'the shared connection is open'")
      proxy.mode = .blackHole
      let start = ContinuousClock.now
      let read = Task { try await postgresError { try await database.rows("SELECT 1") } }
      // The first attempt ends when most of its three seconds are over, and the second gets no response.
      try await Task.sleep(for: .seconds(2))
      proxy.hangUp()
      let error = try await read.value
      #expect(error.kind == .timeout)
      #expect(ContinuousClock.now - start < .seconds(8))
    }
  }

  @Test
  func `if one connection gets no response, idle connections to the same server are not handed out`() async throws {
    try await withProxy(configure: {
      $0.connections = 4
      $0.acquireTimeout = .seconds(30)
      $0.statementTimeout = .seconds(2)
    }) { databases, proxy, server, configuration in
      let database = databases[0]
      let old = try await expectFullPool(of: database, connections: configuration.connections)
      proxy.mode = .blackHole
      let error = try await postgresError { try await database.execute("SELECT 1") }
      #expect(error.kind == .timeout)
      // From now on, the three idle connections would work again, but the client cannot know that.
      proxy.mode = .forward
      let new = try await expectFullPool(of: database, connections: configuration.connections - 1)
      #expect(Set(new).isDisjoint(with: old))
      try await expectNoLeak(of: databases, configuration, server)
    }
  }

  @Test
  func `if the server closes every connection, callers get errors at once, and results once it stops`() async throws {
    try await withProxy(configure: { $0.connections = 4 }) { databases, proxy, server, configuration in
      let load = try await Load.run(on: databases) { load in
        try await load.recovery(within: .seconds(120))
        proxy.mode = .refuse
        proxy.hangUp()
        try await load.turn(within: configuration.maximumCallTime)
        proxy.mode = .forward
        try await load.recovery(within: .seconds(15))
      }
      try await expectNoLeak(of: databases, configuration, server)
      try await load.check(on: server, within: configuration.maximumCallTime)
    }
  }

  @Test(arguments: [FaultProxy.Mode.blackHole, .refuse])
  func `if the first of two hosts is down, the second is found in time, and then tried first`(mode: FaultProxy.Mode)
    async throws
  {
    try await TestCluster.withDatabase { url in
      let proxies = [try FaultProxy(inFrontOf: url), try FaultProxy(inFrontOf: url)]
      defer { for proxy in proxies { proxy.close() } }
      proxies[0].mode = mode
      var configuration = Database.Configuration(url: FaultProxy.url(for: url, through: proxies))
      configuration.connectTimeout = .seconds(1)
      let database = try Database(configuration)
      defer { database.close() }
      let start = ContinuousClock.now
      #expect(try await database.value("SELECT 1") == 1)
      // The first host's time limit, and a margin for a busy machine.
      #expect(ContinuousClock.now - start < configuration.connectTimeout + .seconds(2))
      #expect(proxies.map(\.accepted) == [1, 1])
      try await database.execute("SELECT 1")
      #expect(proxies.map(\.accepted) == [1, 2])
      // And back to the first host, when it works again and the second fails.
      proxies[0].mode = .forward
      proxies[1].mode = .refuse
      proxies[1].hangUp()
      try await eventually("the first host serves") { (try? await database.value("SELECT 1")) == 1 }
      #expect(proxies[0].accepted == 2)
    }
  }
}
