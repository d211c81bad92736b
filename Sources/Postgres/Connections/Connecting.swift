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

/// The pause after a failed attempt to connect. During it, other callers get the same error without a new attempt.
struct Backoff {
  private var until: ContinuousClock.Instant?
  private(set) var delay = Duration.milliseconds(50)
  private var failure: (any Error)?

  var isWaiting: Bool {
    until.map { ContinuousClock.now < $0 } ?? false
  }

  /// - Throws: the last failure, while it is too early to try again.
  func check() throws {
    if let until, let failure, ContinuousClock.now < until { throw failure }
  }

  /// Counts attempts that fail during the same pause only once.
  mutating func note(_ error: any Error) {
    failure = error
    guard !isWaiting else { return }
    until = .now + delay * Double.random(in: 0.8...1.2)
    delay = min(delay * 2, .seconds(1))
  }

  mutating func reset() {
    self = Backoff()
  }
}

/// The options of a libpq URI or `key=value` string.
struct ConnectionString: Sendable {
  private(set) var options: [String: String] = [:]
  /// Whether each connection tries the hosts in a random order.
  let isBalanced: Bool

  /// - Throws: ``PostgresError``, which quotes no part of the text because it may contain a password.
  init(_ text: String) throws {
    let malformed = PostgresError(.invalidParameter, "the database URL is not a libpq connection string")
    let (text, balancing) = Self.withoutBalancing(text)
    guard ["disable", "random"].contains(balancing), let list = PQconninfoParse(text, nil) else { throw malformed }
    defer { PQconninfoFree(list) }
    isBalanced = balancing == "random"
    var item = list
    while let keyword = item.pointee.keyword {
      if let value = item.pointee.val { options[String(cString: keyword)] = String(cString: value) }
      item += 1
    }
    let ports = values("port") ?? []
    guard ports.allSatisfy({ $0.isEmpty || UInt16($0) != nil }) else { throw malformed }
    // libpq reports these mistakes only when it connects.
    let counts = [values("host"), values("hostaddr")].compactMap { $0?.count }
    guard Set(counts).count <= 1 else {
      throw PostgresError(.invalidParameter, "the database URL has a different number of host and hostaddr values")
    }
    guard ports.count <= 1 || ports.count == counts.first ?? 1 else {
      throw PostgresError(.invalidParameter, "the database URL has a different number of hosts and ports")
    }
    // With this option, libpq also shuffles the addresses of one name.
    if isBalanced, PQlibVersion() >= 160_000 { options["load_balance_hosts"] = "random" }
  }

  /// The time limit for connecting to each host, at most a day; nil if the text has none.
  var connectTimeout: Duration? {
    guard let seconds = options["connect_timeout"].flatMap({ Int($0) }), seconds > 0 else { return nil }
    return .seconds(min(seconds, 86_400))
  }

  /// The options that differ between the hosts. libpq's own iteration over the hosts does not respect our deadline and
  /// always starts with the first host.
  var hosts: [[String: String]] {
    let (names, addresses, ports) = (values("host"), values("hostaddr"), values("port") ?? [])
    let count = (addresses ?? names)?.count ?? 1
    // Only libpq can choose the preferred host.
    guard count > 1, options["target_session_attrs"] != "prefer-standby" else { return [[:]] }
    return (0..<count).map { index in
      var host: [String: String] = [:]
      host["host"] = names?[index]
      host["hostaddr"] = addresses?[index]
      if ports.count == count { host["port"] = ports[index] }
      return host
    }
  }

  private func values(_ name: String) -> [String]? {
    options[name]?.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  /// Takes `load_balance_hosts` out of the text: libpq before version 16 rejects it.
  private static func withoutBalancing(_ text: String) -> (text: String, value: String) {
    if text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") {
      guard let match = text.firstMatch(of: /([?&])load_balance_hosts=([^&]*)(&?)/) else { return (text, "disable") }
      let separator = match.3.isEmpty ? "" : match.1
      return (text.replacingCharacters(in: match.range, with: separator), String(match.2))
    }
    guard let match = text.firstMatch(of: /(?:^|\s)load_balance_hosts\s*=\s*'?(\w*)'?/) else {
      return (text, "disable")
    }
    return (text.replacingCharacters(in: match.range, with: ""), String(match.1))
  }
}

extension String {
  fileprivate func replacingCharacters(in range: Range<Index>, with new: some StringProtocol) -> String {
    "\(self[..<range.lowerBound])\(new)\(self[range.upperBound...])"
  }
}
