import CLibpq
import Foundation

/// How a connection is opened: the URL's own words first, ours for what it leaves out.
struct Connecting: Sendable {
  let url: String
  let applicationName: String
  /// For each host in turn; libpq rounds it to seconds and takes at least 2.
  let timeout: Duration
  /// Settings of the session, such as `statement_timeout`; in milliseconds where they are times.
  var session: [(name: String, value: String)] = []
  /// For many callers' single statements, which then cannot change anything.
  var isShared = false

  /// Opens a connection on a thread that may block: names are resolved, and each host of the URL is tried within the
  /// timeout, until one has the wanted `target_session_attrs`.
  func open(reactor: Reactor) async throws -> Connection {
    let reply = Reply<Connection>()
    BlockingWork.run {
      let result = Result<Connection, any Error> {
        try Connection(openBlocking(), isShared: isShared, reactor: reactor)
      }
      // The caller may have given up meanwhile.
      if !reply.fulfil(result), case .success(let connection) = result { connection.close() }
    }
    return try await reply.value()
  }

  /// The libpq connection itself. Blocks.
  func openBlocking() throws -> sending OpaquePointer {
    var options = try parse()
    options.merge(
      [
        "fallback_application_name": applicationName,
        "connect_timeout": String(max(2, Int(timeout.components.seconds))),
        "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3",
        "tcp_user_timeout": "15000",
      ], uniquingKeysWith: { given, _ in given })
    var session = session
    if isShared {
      session.append(("default_transaction_read_only", "on"))
      // libpq takes that setting, too, for a sign of a server that cannot be written to.
      if options["target_session_attrs"] == "read-write" { options["target_session_attrs"] = "primary" }
    }
    options["client_encoding"] = "UTF8"
    let settings = session.map { "-c \($0.name)=\($0.value.replacing(" ", with: "\\ "))" }.joined(separator: " ")
    // Later words win: what the URL says of a setting stands.
    options["options"] = [settings, options["options"] ?? ""].filter { !$0.isEmpty }.joined(separator: " ")

    let keys = options.keys.sorted()
    let names = keys.map { strdup($0) } + [nil]
    let values = keys.map { strdup(options[$0] ?? "") } + [nil]
    defer { (names + values).forEach { free($0) } }
    let pg = PQconnectdbParams(names.map { UnsafePointer($0) }, values.map { UnsafePointer($0) }, 0)
    guard let pg else { throw PostgresError(.cannotConnect, "out of memory") }
    guard PQstatus(pg) == CONNECTION_OK else {
      let message = String(cString: PQerrorMessage(pg)).trimmingCharacters(in: .whitespacesAndNewlines)
      PQfinish(pg)
      throw PostgresError(.cannotConnect, message)
    }
    PQsetNoticeProcessor(pg, { _, _ in }, nil)
    return pg
  }

  func parse() throws -> [String: String] {
    // libpq's own words quote the string, and with it the password.
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
