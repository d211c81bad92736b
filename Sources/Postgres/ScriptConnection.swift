import CLibpq
import Foundation

/// A blocking connection for scripts and tools: texts of many statements, CREATE DATABASE, migrations. Not for serving
/// requests.
public final class ScriptConnection {
  private let pg: OpaquePointer

  private init(_ pg: OpaquePointer) {
    self.pg = pg
  }

  deinit {
    PQfinish(pg)
  }

  /// Connects and runs `body` on a thread that may block, then disconnects.
  ///
  /// - Parameters:
  ///   - url: a libpq URI or `key=value` string.
  ///   - applicationName: the name that `pg_stat_activity` shows.
  ///   - timeout: the limit for connecting to each host of the URL.
  ///   - body: may block. The connection must not leave it.
  public static func run<Value: Sendable>(
    _ url: String, applicationName: String = "script", timeout: Duration = .seconds(5),
    _ body: @escaping @Sendable (ScriptConnection) throws -> Value
  ) async throws -> Value {
    let reply = Reply<Value>()
    BlockingWork.run {
      reply.fulfil(Result { try body(try open(url, applicationName: applicationName, timeout: timeout)) })
    }
    return try await reply.uncancellableValue()
  }

  /// Blocks for at most the timeout for each host of the URL.
  static func open(
    _ url: String, applicationName: String, timeout: Duration = .seconds(5)
  ) throws -> ScriptConnection {
    let connecting = Connecting(url: url, applicationName: applicationName, timeout: timeout)
    return ScriptConnection(try connecting.openBlocking(.exclusive))
  }

  /// The id of the server process for this connection.
  var processID: Int32 { PQbackendPID(pg) }

  /// Runs a text with any number of statements. Without BEGIN, the whole text is one transaction.
  public func script(_ text: String) throws {
    guard !text.utf8.contains(0) else { throw PostgresError(.invalidParameter, "the script contains U+0000") }
    _ = try check(PQexec(pg, text))
  }

  /// The index from 0 of a script's failed statement, and its error.
  struct StatementFailure: Error {
    let index: Int
    let error: PostgresError
  }

  /// Like ``script(_:)``, for a text whose statements may wait for a long time.
  ///
  /// - Parameter look: called at each interval while no result has arrived.
  /// - Throws: ``StatementFailure``
  func script(_ text: String, lookingUpEvery interval: Duration, _ look: () -> Void) throws {
    guard !text.utf8.contains(0) else { throw PostgresError(.invalidParameter, "the script contains U+0000") }
    guard PQsendQuery(pg, text) == 1 else { throw lost }
    var done = 0
    var failure: StatementFailure?
    while true {
      while PQisBusy(pg) == 1 {
        var socket = pollfd(fd: PQsocket(pg), events: Int16(POLLIN), revents: 0)
        if poll(&socket, 1, Int32(clamping: interval.wholeMilliseconds + 1)) == 0 { look() }
        // Even if the socket is not ready: data may be left in the buffer of an encrypted connection.
        guard PQconsumeInput(pg) == 1 else { throw lost }
      }
      guard let result = PQgetResult(pg) else { break }
      do {
        _ = try check(result)
        done += 1
      } catch let error as PostgresError {
        // A result such as COPY, after which reading would not end.
        if error.sqlState == nil { throw error }
        failure = failure ?? StatementFailure(index: done, error: error)
      }
    }
    if let failure { throw failure }
  }

  /// Runs one statement.
  @discardableResult
  public func rows(_ sql: SQL) throws -> Rows {
    if let problem = sql.problem { throw problem }
    let types = sql.types
    return try check(
      sql.withPointers { values, lengths, formats in
        PQexecParams(pg, sql.text, Int32(types.count), types, values, lengths, formats, 1)
      })
  }

  private var lost: PostgresError {
    PostgresError(.connectionLost, String(cString: PQerrorMessage(pg)), mayHaveRun: true)
  }

  private func check(_ result: OpaquePointer?) throws -> Rows {
    guard let result else { throw lost }
    switch PQresultStatus(result) {
    case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: return Rows(ResultHandle(result))
    default:
      let error = PostgresError(result: result)
      PQclear(result)
      guard error.sqlState != nil else { throw PostgresError(.connectionLost, error.message, mayHaveRun: true) }
      throw error
    }
  }
}

extension ScriptConnection {
  /// Inserts rows into a table with COPY.
  ///
  /// - Parameters:
  ///   - table: its name, exactly as in the catalog.
  ///   - columns: their names, exactly as in the catalog, in the order of the values.
  ///   - write: writes the rows. If it throws, no row is inserted.
  /// - Returns: the number of rows.
  @discardableResult public func copy(into table: String, columns: [String], _ write: (inout CopyWriter) throws -> Void)
    throws -> Int
  {
    let names = columns.map(\.asIdentifier).joined(separator: ", ")
    try begin(copy: "COPY \(table.asIdentifier) (\(names)) FROM STDIN (FORMAT binary)")
    do {
      var writer = CopyWriter { bytes in try self.put(bytes) }
      try write(&writer)
      try writer.finish()
      try end(copyBecause: nil)
      return writer.count
    } catch {
      try? end(copyBecause: "the rows were not all sent")
      throw error
    }
  }

  private func begin(copy statement: String) throws {
    guard let result = PQexec(pg, statement) else { throw lost }
    guard PQresultStatus(result) == PGRES_COPY_IN else {
      _ = try check(result)
      throw PostgresError(.misuse, "the statement did not start COPY")
    }
    PQclear(result)
  }

  private func put(_ bytes: [UInt8]) throws {
    let isTaken = bytes.withUnsafeBytes {
      PQputCopyData(pg, $0.bindMemory(to: CChar.self).baseAddress, Int32(clamping: $0.count))
    }
    guard isTaken == 1 else { throw lost }
  }

  /// - Parameter reason: why the rows must be discarded; nil to keep them.
  private func end(copyBecause reason: String?) throws {
    guard PQputCopyEnd(pg, reason) == 1 else { throw lost }
    let rows = Result { try check(PQgetResult(pg)) }
    while let rest = PQgetResult(pg) { PQclear(rest) }
    _ = try rows.get()
  }
}

/// Writes rows for COPY in PostgreSQL's binary format. About five times as fast as INSERT.
public struct CopyWriter {
  private let send: ([UInt8]) throws -> Void
  private var bytes: [UInt8] = []
  /// The number of rows written so far.
  public private(set) var count = 0

  init(_ send: @escaping ([UInt8]) throws -> Void) {
    self.send = send
    bytes = Array("PGCOPY\n".utf8) + [0xff, 0x0d, 0x0a, 0x00]
    bytes += Array(repeating: 0, count: 8)  // no flags, no header extension
  }

  /// Writes one row. It needs a value for each column, of exactly the column's type.
  public mutating func append<each Value: SQLValue>(_ values: repeat each Value) throws {
    let start = begin()
    var columns: Int16 = 0
    for value in repeat each values { try append(value, as: &columns, of: start) }
    try end(start, columns)
  }

  /// Writes one row whose columns after the first are of one type.
  public mutating func append<First: SQLValue, Rest: SQLValue>(_ first: First, followedBy rest: [Rest]) throws {
    let start = begin()
    var columns: Int16 = 0
    try append(first, as: &columns, of: start)
    for value in rest { try append(value, as: &columns, of: start) }
    try end(start, columns)
  }

  /// - Returns: where the row is in `bytes`.
  private mutating func begin() -> Int {
    bytes.appendInteger(Int16(0))
    return bytes.count - 2
  }

  private mutating func append<Value: SQLValue>(_ value: Value, as columns: inout Int16, of start: Int) throws {
    columns += 1
    if bytes.appendField(value) == .unrepresentable {
      bytes.removeSubrange(start...)
      throw PostgresError(.invalidParameter, "column \(columns) of row \(count + 1) cannot be encoded for PostgreSQL")
    }
  }

  private mutating func end(_ start: Int, _ columns: Int16) throws {
    Swift.withUnsafeBytes(of: columns.bigEndian) { bytes.replaceSubrange(start..<start + 2, with: $0) }
    count += 1
    if bytes.count > 1 << 16 { try flush() }
  }

  mutating func finish() throws {
    bytes.appendInteger(Int16(-1))
    try flush()
  }

  private mutating func flush() throws {
    try send(bytes)
    bytes.removeAll(keepingCapacity: true)
  }
}

extension String {
  /// The name in quotes, as an identifier of SQL.
  var asIdentifier: String {
    // By scalars: a quote with a combining mark is another character than a quote.
    "\"" + String(String.UnicodeScalarView(unicodeScalars.flatMap { $0 == "\"" ? ["\"", "\""] : [$0] })) + "\""
  }
}
