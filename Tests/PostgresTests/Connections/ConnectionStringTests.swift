import Foundation
import Postgres
import TestSupport
import Testing

/// Options of the URL that this client handles itself.
@Suite(.timeLimit(.minutes(15)))
struct ConnectionStringTests {
  @Test(arguments: [
    ("host=a hostaddr=127.0.0.1,127.0.0.2", false), ("host=a,b hostaddr=127.0.0.1", false),
    ("host=a,b port=1,2,3", false), ("host=a port=1,2", false), ("host=a,b hostaddr=127.0.0.1,127.0.0.2", true),
    ("host=a,b port=5432", true), ("host=a,b port=5432,5433", true), ("hostaddr=127.0.0.1,127.0.0.2", true),
    ("host=a load_balance_hosts=random", true), ("load_balance_hosts = 'disable' host=a", true),
    ("host=a load_balance_hosts=sometimes", false), ("postgresql://a,b/x?load_balance_hosts=random", true),
    ("postgresql://a,b/x?load_balance_hosts=random&connect_timeout=3", true),
    ("postgresql://a,b/x?connect_timeout=3&load_balance_hosts=random", true),
    ("postgresql://a,b/x?load_balance_hosts=", false),
  ])
  func `lists of hosts, addresses and ports must match`(url: String, isWellFormed: Bool) async throws {
    #expect(Database.Configuration(url: url).isWellFormed == isWellFormed)
    guard !isWellFormed else { return }
    let database = try Database(Database.Configuration(url: url))
    defer { database.close() }
    let error = try await postgresError { try await database.rows("SELECT 1") }
    #expect(error.kind == .invalidParameter)
  }

  @Test func `connect_timeout in the URL replaces the configuration's limit`() async throws {
    try await TestCluster.withDatabase { url in
      let proxy = try FaultProxy(inFrontOf: url)
      defer { proxy.close() }
      proxy.mode = .blackHole
      var configuration = Database.Configuration(url: proxy.url(for: url) + "&connect_timeout=1")
      configuration.connectTimeout = .seconds(60)
      configuration.acquireTimeout = .seconds(60)
      configuration.statementTimeout = .seconds(60)
      let database = try Database(configuration)
      defer { database.close() }
      let start = ContinuousClock.now
      let error = try await postgresError { try await database.rows("SELECT 1") }
      #expect(error.kind == .cannotConnect)
      #expect(ContinuousClock.now - start < .seconds(20))
    }
  }

  @Test(arguments: [true, false])
  func `with load_balance_hosts=random, connections are spread over the hosts`(isRandom: Bool) async throws {
    try await TestCluster.withDatabase { url in
      let proxies = [try FaultProxy(inFrontOf: url), try FaultProxy(inFrontOf: url)]
      defer { for proxy in proxies { proxy.close() } }
      let balancing = isRandom ? "random" : "disable"
      var configuration = Database.Configuration(
        url: FaultProxy.url(for: url, through: proxies) + "&load_balance_hosts=\(balancing)")
      configuration.connectTimeout = .seconds(30)
      configuration.connections = 24
      let database = try Database(configuration)
      defer { database.close() }
      try await expectFullPool(of: database, connections: 24)
      let counts = proxies.map(\.accepted)
      // All on one host by chance: once in eight million runs.
      #expect(isRandom ? counts.allSatisfy { $0 > 0 } : counts == [24, 0], "\(counts)")
    }
  }
}
