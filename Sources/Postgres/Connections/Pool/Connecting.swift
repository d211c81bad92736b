import CLibpq
import Foundation
import Synchronization

/// Opens connections. Options in the URL take precedence over this client's defaults.
final class Connecting: Sendable {
  /// The purpose of a connection.
  enum Purpose: Sendable {
    /// Read-only, for single statements of many callers.
    case shared
    /// Read-only, for the statements of one caller at a time.
    case slow
    case exclusive
  }

  private let url: String
  private let applicationName: String
  private let timeout: Duration
  private let session: @Sendable (Purpose) -> [(name: String, value: String)]
  /// The index in the URL of the last host that responded. After a failover, the new primary is tried first.
  private let preferredHost = Atomic(0)

  /// - Parameters:
  ///   - timeout: the limit for each host of the URL, unless the URL has a `connect_timeout`.
  ///   - session: settings of the session, such as `statement_timeout`. Durations are in milliseconds.
  init(
    url: String, applicationName: String, timeout: Duration,
    session: @escaping @Sendable (Purpose) -> [(name: String, value: String)] = { _ in [] }
  ) {
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
    let string = try ConnectionString(url)
    let options = options(purpose, string)
    let hosts = string.hosts
    let first = preferredHost.load(ordering: .relaxed)
    let order = hosts.indices.map { (first + $0) % hosts.count }
    var failures: [String] = []
    for index in string.isBalanced ? order.shuffled() : order {
      do {
        let pg = try connect(options.merging(hosts[index]) { $1 }, within: string.connectTimeout ?? timeout)
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
  private func connect(_ options: [String: String], within timeout: Duration) throws -> sending OpaquePointer {
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

  private func options(_ purpose: Purpose, _ string: ConnectionString) -> [String: String] {
    var options = string.options
    options.merge(
      [
        "fallback_application_name": applicationName, "keepalives_idle": "10", "keepalives_interval": "5",
        "keepalives_count": "3", "tcp_user_timeout": "15000",
      ], uniquingKeysWith: { given, _ in given })
    options["client_encoding"] = "UTF8"
    // With several hosts, one is probably a standby that lags behind and would return stale rows.
    if string.hosts.count > 1, options["target_session_attrs"] == nil, getenv("PGTARGETSESSIONATTRS") == nil {
      options["target_session_attrs"] = "read-write"
    }
    let session = session(purpose)
    // libpq would treat a server with a read-only session as not writable.
    if session.contains(where: { $0.name == "default_transaction_read_only" }),
      options["target_session_attrs"] == "read-write"
    {
      options["target_session_attrs"] = "primary"
    }
    let settings = session.map { "-c \($0.name)=\($0.value.replacing(" ", with: "\\ "))" }.joined(separator: " ")
    // Later settings win, so the URL overrides ours. Warnings come last and cannot be overridden: only a warning
    // reports a COMMIT that the standby did not confirm.
    let warnings = session.isEmpty ? "" : "-c client_min_messages=warning"
    options["options"] = [settings, options["options"] ?? "", warnings].filter { !$0.isEmpty }.joined(separator: " ")
    return options
  }
}
