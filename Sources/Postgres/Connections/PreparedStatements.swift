/// The named prepared statements of a connection. With them, the server parses each text only once.
struct PreparedStatements {
  /// Whether statements get names.
  enum Naming: Sendable {
    case always, never
  }

  /// A text with the types of its parameters. The same text means something else with other types.
  typealias Key = SQL.Template

  final class Statement {
    let key: Key
    /// Empty if it is sent unnamed.
    let name: String
    /// The name for libpq, ending in a zero.
    let nameBytes: [CChar]
    /// The names of its columns, once a result has provided them. They never change for a planned statement: the server
    /// rejects it if they would. FETCH and EXECUTE return another statement's columns, so they are excluded.
    private(set) var columns: Columns?
    private let keepsColumns: Bool
    let effect: SessionEffect
    fileprivate var lastUse = 0

    /// Whether a DEALLOCATE may be sent before it. In an aborted transaction, DEALLOCATE fails, and a ROLLBACK behind
    /// it would not run. A query fails there anyway.
    fileprivate var mayFollowDeallocate: Bool { keepsColumns }

    var isNamed: Bool { !name.isEmpty }

    fileprivate init(_ key: Key, name: String) {
      let text = key.text
      self.key = key
      self.name = name
      nameBytes = Array(name.utf8CString)
      let statement = text.hasPrefix("/*") ? text.split(separator: "*/ ", maxSplits: 1).last ?? "" : text[...]
      let word = statement.prefix { $0.isLetter }
      effect = SessionEffect(of: text)
      let isPlanned = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "VALUES", "MERGE"].contains(word.uppercased())
      keepsColumns = !name.isEmpty && isPlanned
    }

    func note(_ columns: Columns) {
      if keepsColumns { self.columns = columns }
    }
  }

  /// Each one takes memory on the server. Beyond this number, a new one replaces the least recently used one.
  private static let maximum = 500

  private let naming: Naming
  private var confirmed: [Key: Statement] = [:]
  /// Sent to the server but not confirmed. Meanwhile, the same text is sent unnamed.
  private var unconfirmed: Set<Key> = []
  /// The names of statements that are no longer used, but that the server still has.
  private var unused: [String] = []
  /// Statements that were sent unnamed.
  private var unnamed: [Key: Statement] = [:]
  private var names = 0
  private var uses = 0

  init(_ naming: Naming) {
    self.naming = naming
  }

  /// The statement that the server has confirmed under this key, for the next use.
  mutating func use(_ key: Key) -> Statement? {
    guard let statement = confirmed[key] else { return nil }
    uses += 1
    statement.lastUse = uses
    return statement
  }

  /// A new named statement for a text that is neither confirmed nor in flight; nil if the text must be sent unnamed.
  ///
  /// - Returns: the statement, and the names of statements that the server must forget first.
  mutating func add(_ key: Key) -> (statement: Statement, replaced: [String])? {
    guard naming == .always, confirmed[key] == nil, !unconfirmed.contains(key) else { return nil }
    let statement = Statement(key, name: "s\(names + 1)")
    if confirmed.count + unconfirmed.count >= Self.maximum {
      guard statement.mayFollowDeallocate, let oldest = confirmed.min(by: { $0.value.lastUse < $1.value.lastUse })
      else {
        return nil
      }
      confirmed[oldest.key] = nil
      unused.append(oldest.value.name)
    }
    names += 1
    uses += 1
    statement.lastUse = uses
    unconfirmed.insert(key)
    guard statement.mayFollowDeallocate else { return (statement, []) }
    defer { unused = [] }
    return (statement, unused)
  }

  /// The statement for a text that must be sent unnamed.
  mutating func unnamed(_ key: Key) -> Statement {
    if let known = unnamed[key] { return known }
    if unnamed.count >= Self.maximum { unnamed = [:] }
    let statement = Statement(key, name: "")
    unnamed[key] = statement
    return statement
  }

  /// Records whether the server prepared the statement.
  mutating func settle(_ statement: Statement, isPrepared: Bool) {
    unconfirmed.remove(statement.key)
    if isPrepared { confirmed[statement.key] = statement }
  }

  /// Makes the next call prepare the text again.
  ///
  /// - Parameter isGone: whether the server has forgotten the statement already.
  mutating func forget(_ statement: Statement, isGone: Bool) {
    guard confirmed[statement.key] === statement else { return }
    confirmed[statement.key] = nil
    if !isGone { unused.append(statement.name) }
  }

  /// Records that the server still has a statement, because its DEALLOCATE failed or was skipped.
  mutating func keep(_ name: String) {
    unused.append(name)
  }
}
