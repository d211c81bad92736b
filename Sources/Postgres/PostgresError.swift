import CLibpq

/// What went wrong with a statement, a transaction or a connection.
///
/// Two questions matter to a caller: was it the statement's fault (``sqlState``, ``constraint``), and if it was not,
/// may the statement have taken effect all the same (``mayHaveRun``)?
public struct PostgresError: Error, Sendable, CustomStringConvertible {
  /// Who or what failed.
  public enum Kind: Sendable, Equatable {
    /// The server refused the statement: see ``PostgresError/sqlState``.
    case server
    /// No connection could be made in time.
    case cannotConnect
    /// The connection broke while the statement was under way.
    case connectionLost
    /// A deadline passed.
    case timeout
    /// Too many callers are waiting already, or too many bytes of theirs; nothing was sent.
    case overloaded
    /// The connection broke while COMMIT was under way: the transaction may or may not have been committed.
    case unknownOutcome
    /// COMMIT was answered by ROLLBACK, because a statement had failed before and its error was swallowed.
    case transactionAborted
    /// A transaction was begun inside another's body, or used after its end.
    case misuse
    /// A parameter that PostgreSQL cannot take.
    case invalidParameter
    /// A column is missing, NULL, an array of several dimensions or with NULLs, or of another type than was asked for;
    /// the message names it.
    case decoding
  }

  /// Who or what failed.
  public let kind: Kind
  /// The server's or this client's own words, in English. Not for end users: may quote values.
  public private(set) var message: String
  /// The five characters of `errcodes.txt`, when the server spoke.
  public var sqlState: String?
  /// The named constraint that was violated.
  public var constraint: String?
  /// What the server says it is about, where it does: the table's name, the column's, and more words, which may quote
  /// values.
  public var table: String?
  /// See ``table``.
  public var column: String?
  /// See ``table``.
  public var detail: String?
  /// False only if the statement surely had no effect.
  public var mayHaveRun: Bool
  /// The table was changed under a prepared statement, or the statement is no longer prepared: preparing it anew helps.
  private(set) var isStalePlan = false

  init(_ kind: Kind, _ message: String, mayHaveRun: Bool = false) {
    self.kind = kind
    self.message = message
    self.mayHaveRun = mayHaveRun
  }

  /// From a result with an error; leaves the result to its owner.
  init(result: OpaquePointer) {
    func field(_ code: Character) -> String? {
      code.asciiValue.flatMap { PQresultErrorField(result, Int32($0)) }.map { String(cString: $0) }
    }
    kind = .server
    isStalePlan = field("R") == "RevalidateCachedQuery" || field("C") == "26000"
    sqlState = field("C")
    constraint = field("n")
    table = field("t")
    column = field("c")
    detail = field("D")
    message = field("M") ?? String(cString: PQresultErrorMessage(result))
    mayHaveRun = false
  }

  /// The same, with where it happened before the server's words.
  func at(_ place: String) -> PostgresError {
    var error = self
    error.message = "\(place): \(message)"
    return error
  }

  /// The message with the SQLSTATE and the constraint, for logs: without the values that messages about data quote.
  public var description: String {
    let isAboutData = sqlState?.hasPrefix("22") == true
    let message = isAboutData ? message.replacing(/".*"/.dotMatchesNewlines(), with: "\"...\"") : message
    let state = sqlState.map { " (SQLSTATE \($0))" } ?? ""
    let rule = constraint.map { " [\($0)]" } ?? ""
    return "\(message)\(state)\(rule)"
  }

  /// The transaction lost against another and would probably succeed if its whole body were repeated.
  public var isWorthRepeating: Bool {
    sqlState == "40001" || sqlState == "40P01" || isStalePlan
  }

  /// Another transaction held a lock for longer than `lock_timeout`. The server works: it is the row or the table that
  /// is busy.
  public var isLockTimeout: Bool { sqlState == "55P03" }

  /// The database cannot be used at present, through no fault of the statement: an HTTP service answers 503.
  public var isUnavailable: Bool {
    switch kind {
    case .cannotConnect, .connectionLost, .timeout, .overloaded, .unknownOutcome: true
    case .server:
      switch sqlState ?? "" {
      // Shutdown and crash of the server, start-up and recovery, too many connections, a standby that was asked to
      // write, the cancellation by statement_timeout or lock_timeout, and a conflict lost again and again.
      case "57P01", "57P02", "57P03", "53300", "25006", "57014", "55P03", "40001", "40P01": true
      case let state: state.hasPrefix("08") || state.hasPrefix("53")
      }
    case .transactionAborted, .misuse, .invalidParameter, .decoding: false
    }
  }

  /// For a statement that only reads.
  var isWorthAskingAgain: Bool {
    kind == .connectionLost || kind == .cannotConnect || endsConnection || isStalePlan
  }

  /// The server ends the connection after this error.
  var endsConnection: Bool {
    sqlState.map { $0.hasPrefix("57P") || $0.hasPrefix("08") } ?? false
  }
}
