import CLibpq
import Foundation

/// A blocking connection for scripts and tools: texts of many statements, CREATE DATABASE, migrations. Not for serving
/// requests.
public final class ScriptConnection {
  let pg: OpaquePointer

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

  var lost: PostgresError {
    PostgresError(.connectionLost, String(cString: PQerrorMessage(pg)), mayHaveRun: true)
  }

  func check(_ result: OpaquePointer?) throws -> Rows {
    guard let result else {
      throw PostgresError(.connectionLost, String(cString: PQerrorMessage(pg)), mayHaveRun: true)
    }
    switch PQresultStatus(result) {
    case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
      return Rows(ResultHandle(result))
    default:
      let error = PostgresError(result: result)
      PQclear(result)
      guard error.sqlState != nil else { throw PostgresError(.connectionLost, error.message, mayHaveRun: true) }
      throw error
    }
  }
}
