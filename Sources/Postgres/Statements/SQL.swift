/// A statement with its parameters, written as an ordinary string literal:
///
///     let sql: SQL = "SELECT title FROM events WHERE id = \(id) AND version > \(version)"
///
/// Every `\(value)` becomes `$1`, `$2` and so on. Its value is sent separately from the text, in PostgreSQL's binary
/// format and with its type, so a value can never become SQL. Another `SQL` may be interpolated as a fragment; its
/// parameters are renumbered. `\(unescaped:)` is the only way to put a plain string into the text: all other text is a
/// `StaticString`, which only the compiler makes, from a literal.
///
/// The text is the key of the prepared statement, so keep it static: pass everything that varies as a parameter. A
/// ``CompiledSQL`` is assembled only once.
public struct SQL: Sendable, ExpressibleByStringInterpolation {
  /// PostgreSQL rejects larger ones, and closes the connection.
  private static let maximumParameterBytes = 0x3fff_ffff

  var template: Template
  /// All parameters, in one allocation: each with its ``ParameterHeader`` in front.
  @usableFromInline var bytes: [UInt8]
  /// Why the statement cannot be sent. As a text, because statements are copied often.
  private var reason: String?

  var problem: PostgresError? { reason.map { PostgresError(.invalidParameter, $0) } }

  /// A comment that ``SQL/comment`` puts in front of statements. It is part of the key of their prepared statements, so
  /// it must be one of a few, such as a name for the part of the program that sends them.
  public struct Comment: Sendable {
    let text: String

    /// - Parameter words: trusted text. An asterisk, which could end the comment, is left out.
    public init(_ words: String) {
      text = "/* \(words.filter { $0 != "*" && $0 != "\0" }) */ "
    }
  }

  /// In front of each statement that the task sends, except those of a ``DataLoader`` that several tasks share.
  @TaskLocal public static var comment: Comment?

  /// A statement without parameters.
  public init(stringLiteral text: StaticString) {
    template = Template(text)
    bytes = []
  }

  public init(stringInterpolation: StringInterpolation) {
    self = stringInterpolation.sql
  }

  /// The text as the server sees it, with `$1`, `$2` and so on for the parameters.
  public var text: String { template.text }

  /// Concatenates two texts, with the parameters of both.
  public static func + (left: SQL, right: SQL) -> SQL {
    var sum = left
    sum.append(right)
    return sum
  }

  /// Appends a text with its parameters.
  public static func += (left: inout SQL, right: SQL) {
    left.append(right)
  }

  fileprivate mutating func append(literal: StaticString) {
    template.append(literal)
  }

  /// Appends text that becomes SQL unchanged: only for names that the program chose, never for untrusted text.
  public mutating func append(unescaped text: String) {
    if text.utf8.hasZero { note("the statement's text contains the character U+0000") }
    template.append(unescaped: text)
  }

  /// Appends a value, which is sent separately from the text.
  @inlinable
  public mutating func append<Value: SQLValue>(_ value: Value) {
    appendBytes(of: value, number: parameterCount + 1)
    appendPlace(of: Value.sqlType)
  }

  @usableFromInline var parameterCount: Int { template.parameterCount }

  /// Appends the value of a parameter but not its place in the text.
  @inlinable
  mutating func appendBytes<Value: SQLValue>(of value: Value, number: Int) {
    let start = bytes.count
    if start == 0 { bytes.reserveCapacity(96) }
    ParameterHeader.append(to: &bytes)
    let encoding = value.encode(into: &bytes)
    finishBytes(Value.sqlType, encoding, from: start, number: number)
  }

  /// - Parameter start: where the header is in `bytes`.
  @usableFromInline
  mutating func finishBytes(_ type: SQLType, _ encoding: SQLEncoding, from start: Int, number: Int) {
    let first = start + ParameterHeader.size
    if encoding == .null { bytes.removeLast(bytes.count - first) }
    let length = bytes.count - first
    let header = ParameterHeader(type: type.oid, length: encoding == .null ? -1 : Int32(clamping: length))
    header.write(to: &bytes, at: start)
    if encoding == .unrepresentable {
      note(
        "parameter $\(number) cannot be encoded for PostgreSQL: text with U+0000, a value out of range, or a record")
    }
    if length > Self.maximumParameterBytes { note("parameter $\(number) has more than 1 GB") }
  }

  @usableFromInline
  mutating func appendPlace(of type: SQLType) {
    template.append(typeOfNext: type.oid)
    checkCount()
  }

  fileprivate mutating func note(_ problem: String) {
    reason = reason ?? problem
  }

  private mutating func checkCount() {
    if template.parameterCount > UInt16.max { note("a statement has at most \(UInt16.max) parameters: use an array") }
  }

  private mutating func append(_ other: SQL) {
    template.append(other.template)
    if !other.bytes.isEmpty { bytes += other.bytes }
    reason = reason ?? other.reason
    checkCount()
  }

  /// The interpolations that `\( )` accepts: a value, an optional value, a fragment, an argument, and unescaped text.
  public struct StringInterpolation: StringInterpolationProtocol {
    @usableFromInline var sql: SQL

    public init(literalCapacity: Int, interpolationCount: Int) {
      sql = SQL(stringLiteral: "")
      sql.template.reserveCapacity(8 * interpolationCount + 1)
    }

    public mutating func appendLiteral(_ literal: StaticString) {
      sql.append(literal: literal)
    }

    /// A value. It is sent separately from the text, never in it.
    @inlinable
    public mutating func appendInterpolation(_ value: some SQLValue) {
      sql.append(value)
    }

    /// A value or NULL.
    @inlinable
    public mutating func appendInterpolation<Value: SQLValue>(_ value: Value?) {
      sql.append(value)
    }

    /// A fragment with its own parameters.
    public mutating func appendInterpolation(_ fragment: SQL) {
      sql.append(fragment)
    }

    /// An argument of a ``CompiledSQL``, whose value comes later.
    public mutating func appendInterpolation<Value: SQLValue>(_ argument: SQLArgument<Value>) {
      sql.template.append(argument: argument.number, type: Value.sqlType.oid)
    }

    /// A value or an argument.
    public mutating func appendInterpolation(_ expression: some SQLExpression) {
      sql.append(expression.placeholder)
    }

    /// Text that becomes SQL unchanged: only for names that the program chose, never for untrusted text.
    public mutating func appendInterpolation(unescaped text: String) {
      sql.append(unescaped: text)
    }
  }
}

extension SQL {
  /// The statement with the task's comment.
  var commented: SQL {
    guard let comment = SQL.comment else { return self }
    var statement = self
    statement.template.prefix = comment
    return statement
  }
}

extension [SQL] {
  /// The statements with the task's comment.
  var commented: [SQL] {
    guard let comment = SQL.comment else { return self }
    var statements = self
    for index in indices { statements[index].template.prefix = comment }
    return statements
  }

  /// Why one of them cannot be sent.
  var problem: PostgresError? {
    for statement in self { if let problem = statement.problem { return problem } }
    return nil
  }

  /// The size of all parameters in bytes, each with its header.
  var parameterBytes: Int { reduce(0) { $0 + $1.bytes.count } }

  /// All fragments in one, with the separator between them.
  public func joined(separator: SQL) -> SQL {
    var all: SQL = ""
    for (index, fragment) in enumerated() {
      if index > 0 { all += separator }
      all += fragment
    }
    return all
  }
}
