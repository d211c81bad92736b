import CLibpq

/// An error of a statement, a transaction or a connection.
///
/// Two questions matter to a caller. Did the statement itself fail (``sqlState``, ``constraint``)? If not, may the
/// statement have taken effect anyway (``mayHaveRun``)?
public struct PostgresError: Error, Sendable, CustomStringConvertible {
  /// The category of an error.
  public enum Kind: Sendable, Equatable {
    /// The server rejected the statement: see ``PostgresError/sqlState``.
    case server
    /// No connection could be made in time.
    case cannotConnect
    /// The connection broke while the statement was in flight.
    case connectionLost
    /// A deadline passed.
    case timeout
    /// Too many callers are waiting, or their parameters have too many bytes. Nothing was sent.
    case overloaded
    /// The connection broke during COMMIT: the transaction may or may not have been committed.
    case unknownOutcome
    /// COMMIT returned ROLLBACK, because an earlier statement failed and its error was swallowed.
    case transactionAborted
    /// The API was used incorrectly: for example, a transaction began inside another's body, or was used after its end.
    case misuse
    /// PostgreSQL cannot represent a parameter.
    case invalidParameter
    /// A column is missing, is NULL, has another type than requested, or is an array with NULLs or several dimensions.
    /// The message names the column.
    case decoding
  }

  /// The category of the error.
  public let kind: Kind
  /// The message of the server or of this client, in English. Not for end users: it may quote values.
  public private(set) var message: String
  /// The five-character code from `errcodes.txt`, if the error comes from the server.
  public var sqlState: String?
  /// The named constraint that was violated.
  public var constraint: String?
  /// False only if the statement certainly had no effect.
  public var mayHaveRun: Bool
  /// The table changed after the statement was prepared, or the statement is no longer prepared. Preparing it again
  /// helps.
  var isStalePlan = false
  /// The statement ran in a read-only session, so it had no effect even if it ran.
  var isHarmless = false
  /// The server itself accepts no writes, as a standby. If false, SQLSTATE 25006 is the program's mistake.
  var isFromReadOnlyServer = false

  init(_ kind: Kind, _ message: String, mayHaveRun: Bool = false) {
    self.kind = kind
    self.message = message
    self.mayHaveRun = mayHaveRun
  }

  /// Reads the error of a result. Does not free the result.
  init(result: OpaquePointer) {
    func field(_ code: Character) -> String? {
      code.asciiValue.flatMap { PQresultErrorField(result, Int32($0)) }.map { String(cString: $0) }
    }
    kind = .server
    isStalePlan = field("R") == "RevalidateCachedQuery" || field("C") == "26000"
    sqlState = field("C")
    constraint = field("n")
    message = field("M") ?? String(cString: PQresultErrorMessage(result))
    mayHaveRun = false
  }

  /// The same error, with the place prepended to its message.
  func at(_ place: String) -> PostgresError {
    var error = self
    error.message = "\(place): \(message)"
    return error
  }

  /// The message with the SQLSTATE and the constraint, for logs. Values that messages about data quote are removed.
  public var description: String {
    let isAboutData = sqlState?.hasPrefix("22") == true
    let message = isAboutData ? message.replacing(/".*"/.dotMatchesNewlines(), with: "\"...\"") : message
    let state = sqlState.map { " (SQLSTATE \($0))" } ?? ""
    let rule = constraint.map { " [\($0)]" } ?? ""
    return "\(message)\(state)\(rule)"
  }

  /// The transaction conflicted with another, or with a change of the schema. Running its whole body again would
  /// probably succeed.
  public var isRetryable: Bool {
    sqlState == "40001" || sqlState == "40P01" || isStalePlan
  }

  /// Another transaction held a lock for longer than `lock_timeout`. The server works, but the row or the table is
  /// busy.
  public var isLockTimeout: Bool { sqlState == "55P03" }

  /// The database is temporarily unavailable, through no fault of the statement. An HTTP service responds with 503.
  public var isUnavailable: Bool {
    switch kind {
    case .cannotConnect, .connectionLost, .timeout, .overloaded, .unknownOutcome: true
    case .server:
      switch sqlState ?? "" {
      // Shutdown, crash, start-up and recovery of the server; too many connections; statement_timeout and
      // lock_timeout; repeated conflicts with other transactions.
      case "57P01", "57P02", "57P03", "53300", "57014", "55P03", "40001", "40P01": true
      // A write on a standby, but not a write among reads.
      case "25006": isFromReadOnlyServer
      case let state: state.hasPrefix("08") || state.hasPrefix("53")
      }
    case .transactionAborted, .misuse, .invalidParameter, .decoding: false
    }
  }

  /// Whether a read may be sent again on another connection.
  var isRetryableRead: Bool {
    (kind == .connectionLost || kind == .cannotConnect || endsConnection || isRetryable) && (!mayHaveRun || isHarmless)
  }

  /// The server has no prepared statement with this name.
  var isUnknownStatement: Bool { sqlState == "26000" }

  /// The server ends the connection after this error.
  var endsConnection: Bool {
    sqlState.map { $0.hasPrefix("57P") || $0.hasPrefix("08") } ?? false
  }
}

extension PostgresError {
  /// Why a column could not be read.
  init(_ error: any Error, column: String, type: UInt32, wanted: Any.Type) {
    self.init(error, in: "column \"\(column)\"", type: type, wanted: wanted)
  }

  /// - Parameter place: the column, or the field of a record.
  init(_ error: any Error, in place: String, type: UInt32, wanted: Any.Type) {
    let reason =
      switch error {
      case CellMismatch.null: "is NULL"
      case CellMismatch.type: "has the type \(SQLType.name(of: type))"
      case CellMismatch.malformed: "holds a value that does not fit"
      case CellMismatch.nullElement: "has NULL among its elements"
      case CellMismatch.dimensions: "is an array with several dimensions"
      default: "cannot be read: \((error as? PostgresError)?.message ?? "\(error)")"
      }
    self.init(.decoding, "\(place) \(reason), wanted \(wanted)")
  }
}
