/// The effect of a statement on its session, judged by its text. A function may hide more. A DO block can do anything.
enum SessionEffect: Comparable, Sendable {
  case none
  /// Begins, ends or changes a transaction.
  case transaction
  /// Outlives the transaction: a setting, a lock of the session, a prepared statement, a temporary table, a LISTEN.
  case session

  init(of text: String) {
    var text = text
    self = text.withUTF8 { Self(of: $0) }
  }

  private init(of text: UnsafeBufferPointer<UInt8>) {
    var words = StatementWords(text)
    let first = words.next()
    self = Self.ofCommand(first, &words)
    guard self < .session else { return }
    while let word = words.next() {
      switch word {
      case "PG_ADVISORY_LOCK", "PG_ADVISORY_LOCK_SHARED", "PG_TRY_ADVISORY_LOCK", "PG_TRY_ADVISORY_LOCK_SHARED",
        "SETSEED", "PG_TEMP":
        self = .session
      case "SET_CONFIG":
        if !words.lastArgumentIsTrue() { self = .session }
      case "INTO", "CREATE":
        if words.nextIsTemporary() { self = .session }
      // Updating this view is another way to say SET.
      case "PG_SETTINGS" where first != "SELECT": self = .session
      default: continue
      }
      if self == .session { return }
    }
  }

  private static func ofCommand(_ command: String?, _ words: inout StatementWords) -> SessionEffect {
    switch command {
    case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE": return .transaction
    case "RESET", "LISTEN", "UNLISTEN", "DEALLOCATE", "DISCARD", "LOAD", "DO": return .session
    case "PREPARE": return words.next() == "TRANSACTION" ? .transaction : .session
    case "DECLARE": return words.contains("HOLD") ? .session : .none
    case "CREATE": return words.nextIsTemporary() ? .session : .none
    case "SET":
      switch words.next() {
      case "LOCAL": return words.next() == "TRANSACTION_READ_ONLY" ? .transaction : .none
      case "TRANSACTION", "TRANSACTION_READ_ONLY": return .transaction
      case "CONSTRAINTS": return .none
      default: return .session
      }
    default: return .none
    }
  }
}
