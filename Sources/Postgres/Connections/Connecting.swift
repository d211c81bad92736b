import CLibpq
import Foundation
import Synchronization

/// Opens connections. Options in the URL take precedence over this client's defaults.
final class Connecting: Sendable {
  /// The purpose of a connection.
  enum Purpose: Sendable {
    /// Read-only, for single statements of many callers.
    case shared
    case exclusive
  }

  private let url: String
  private let applicationName: String
  private let timeout: Duration
  /// Settings of the session, such as `statement_timeout`. Durations are in milliseconds.
  private let session: [(name: String, value: String)]
  /// The index in the URL of the last host that responded. After a failover, the new primary is tried first.
  private let preferredHost = Atomic(0)

  /// - Parameter timeout: the limit for each host of the URL.
  init(url: String, applicationName: String, timeout: Duration, session: [(name: String, value: String)] = []) {
    self.url = url
    self.applicationName = applicationName
    self.timeout = timeout
    self.session = session
  }

  /// Opens a connection on a thread that may block, to resolve names and to try each host of the URL.
  func open(_ purpose: Purpose, _ make: @escaping @Sendable (sending OpaquePointer) throws -> Connection) async throws
    -> Connection
  {
    let reply = Reply<Connection>()
    BlockingWork.run { [self] in
      let result = Result<Connection, any Error> { try make(openBlocking(purpose)) }
      // The caller may have given up in the meantime.
      if !reply.fulfil(result), case .success(let connection) = result { connection.close() }
    }
    return try await reply.value()
  }

  /// Opens the libpq connection. Blocks for at most the timeout for each host of the URL.
  func openBlocking(_ purpose: Purpose) throws -> sending OpaquePointer {
    let options = try options(purpose)
    let hosts = Self.hosts(of: options)
    let first = preferredHost.load(ordering: .relaxed)
    var failures: [String] = []
    for offset in hosts.indices {
      let index = (first + offset) % hosts.count
      do {
        let pg = try connect(options.merging(hosts[index]) { $1 })
        preferredHost.store(index, ordering: .relaxed)
        return pg
      } catch let error as PostgresError {
        failures.append(error.message)
      }
    }
    throw PostgresError(.cannotConnect, failures.joined(separator: "; "))
  }

  /// Connects with its own time limit: libpq has none for asynchronous connecting, and its `connect_timeout` has whole
  /// seconds.
  private func connect(_ options: [String: String]) throws -> sending OpaquePointer {
    let keys = options.keys.sorted()
    let names = keys.map { strdup($0) } + [nil]
    let values = keys.map { strdup(options[$0] ?? "") } + [nil]
    defer { (names + values).forEach { free($0) } }
    let pg = PQconnectStartParams(names.map { UnsafePointer($0) }, values.map { UnsafePointer($0) }, 0)
    guard let pg else { throw PostgresError(.cannotConnect, "out of memory") }
    let deadline = ContinuousClock.now + timeout
    var step = PGRES_POLLING_WRITING
    while PQstatus(pg) != CONNECTION_BAD, step != PGRES_POLLING_OK, step != PGRES_POLLING_FAILED {
      let left = deadline - .now
      var socket = pollfd(
        fd: PQsocket(pg), events: Int16(step == PGRES_POLLING_READING ? POLLIN : POLLOUT), revents: 0)
      guard left > .zero, poll(&socket, 1, Int32(clamping: left.wholeMilliseconds + 1)) != 0 else {
        let host = PQhost(pg).map { String(cString: $0) } ?? "the server"
        PQfinish(pg)
        throw PostgresError(.cannotConnect, "\(host) did not respond within \(timeout)")
      }
      step = PQconnectPoll(pg)
    }
    guard PQstatus(pg) == CONNECTION_OK else {
      let message = String(cString: PQerrorMessage(pg)).trimmingCharacters(in: .whitespacesAndNewlines)
      PQfinish(pg)
      throw PostgresError(.cannotConnect, message)
    }
    PQsetNoticeProcessor(pg, { _, _ in }, nil)
    return pg
  }

  private func options(_ purpose: Purpose) throws -> [String: String] {
    var options = try Self.parse(url)
    options.merge(
      [
        "fallback_application_name": applicationName, "keepalives_idle": "10", "keepalives_interval": "5",
        "keepalives_count": "3", "tcp_user_timeout": "15000",
      ], uniquingKeysWith: { given, _ in given })
    options["client_encoding"] = "UTF8"
    // With several hosts, one is probably a standby that lags behind and would return stale rows.
    if Self.hosts(of: options).count > 1, options["target_session_attrs"] == nil, getenv("PGTARGETSESSIONATTRS") == nil
    {
      options["target_session_attrs"] = "read-write"
    }
    var session = session
    if purpose == .shared, !session.isEmpty {
      session.append(("default_transaction_read_only", "on"))
      // libpq would treat a server with this setting as not writable.
      if options["target_session_attrs"] == "read-write" { options["target_session_attrs"] = "primary" }
    }
    let settings = session.map { "-c \($0.name)=\($0.value.replacing(" ", with: "\\ "))" }.joined(separator: " ")
    // Later settings win, so the URL overrides ours. Warnings come last and cannot be overridden: only a warning
    // reports a COMMIT that the standby did not confirm.
    let warnings = session.isEmpty ? "" : "-c client_min_messages=warning"
    options["options"] = [settings, options["options"] ?? "", warnings].filter { !$0.isEmpty }.joined(separator: " ")
    return options
  }

  /// The options that differ between the hosts of the URL. libpq's own iteration over the hosts does not respect our
  /// deadline and always starts with the first host.
  private static func hosts(of options: [String: String]) -> [[String: String]] {
    func list(_ name: String) -> [String]? {
      options[name]?.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }
    let names = list("host")
    let addresses = list("hostaddr")
    let count = (addresses ?? names)?.count ?? 1
    // Only libpq can choose the preferred host.
    guard count > 1, options["target_session_attrs"] != "prefer-standby" else { return [[:]] }
    let ports = list("port") ?? []
    return (0..<count).map { index in
      var host: [String: String] = [:]
      host["host"] = names?[index]
      host["hostaddr"] = addresses?[index]
      if ports.count == count { host["port"] = ports[index] }
      return host
    }
  }

  /// - Throws: ``PostgresError``, which quotes no part of the URL because it may contain a password.
  static func parse(_ url: String) throws -> [String: String] {
    let malformed = PostgresError(.invalidParameter, "the database URL is not a libpq connection string")
    guard let list = PQconninfoParse(url, nil) else { throw malformed }
    defer { PQconninfoFree(list) }
    var options: [String: String] = [:]
    var item = list
    while let keyword = item.pointee.keyword {
      if let value = item.pointee.val { options[String(cString: keyword)] = String(cString: value) }
      item += 1
    }
    let ports = options["port"]?.split(separator: ",", omittingEmptySubsequences: false) ?? []
    guard ports.allSatisfy({ $0.isEmpty || UInt16($0) != nil }) else { throw malformed }
    return options
  }
}
