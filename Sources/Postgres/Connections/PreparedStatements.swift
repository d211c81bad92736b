/// The statements that a connection has prepared under names, so that the server parses each text once.
struct PreparedStatements {
  /// Whether statements get names at all.
  enum Naming: Sendable {
    case always, never
  }

  /// A text with the types of its parameters: one text means different things with other types.
  struct Key: Hashable {
    let text: String
    let types: [UInt32]

    init(_ sql: SQL) {
      text = sql.text
      types = sql.parameters.map(\.type)
    }

    /// Texts are long, and few have the same length.
    func hash(into hasher: inout Hasher) {
      hasher.combine(text.utf8.count)
      hasher.combine(types.count)
    }
  }

  final class Statement {
    let name: String
    /// The names of its columns, once it has returned some. They never change for a planned statement: the server
    /// refuses it when they would. FETCH and EXECUTE return another statement's columns.
    private(set) var columns: ColumnNames?
    private let keepsColumns: Bool

    fileprivate init(name: String, text: String) {
      self.name = name
      let word = text.prefix { $0.isLetter }
      keepsColumns = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "VALUES", "MERGE"].contains(word.uppercased())
    }

    func note(_ columns: ColumnNames) {
      if keepsColumns { self.columns = columns }
    }
  }

  /// Beyond this number, texts are parsed each time: they vary, and names that are never used again take memory on the
  /// server.
  private static let maximum = 500

  private let naming: Naming
  private var confirmed: [Key: Statement] = [:]
  /// Sent to the server and not confirmed. The next caller with the same text sends it unnamed.
  private var unconfirmed: Set<Key> = []
  private var names = 0

  init(_ naming: Naming) {
    self.naming = naming
  }

  /// The statement that the server has confirmed under this key.
  subscript(key: Key) -> Statement? { confirmed[key] }

  /// A new name for a text that is neither confirmed nor on its way; nil if the text is to be sent unnamed.
  mutating func add(_ key: Key) -> Statement? {
    guard naming == .always, confirmed[key] == nil, confirmed.count < Self.maximum,
      unconfirmed.insert(key).inserted
    else { return nil }
    names += 1
    return Statement(name: "s\(names)", text: key.text)
  }

  /// Notes the server's result for a statement that was to be prepared.
  mutating func settle(_ key: Key, _ statement: Statement, isPrepared: Bool) {
    unconfirmed.remove(key)
    if isPrepared { confirmed[key] = statement }
  }

  /// Prepares the text anew when it is sent next.
  mutating func forget(_ key: Key) {
    confirmed[key] = nil
  }
}
