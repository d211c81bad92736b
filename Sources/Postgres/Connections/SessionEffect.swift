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

/// The words of a statement in upper case, without comments and strings. A quoted name is a word only in front of a
/// parenthesis, where it is that of a function.
struct StatementWords {
  private let text: UnsafeBufferPointer<UInt8>
  private var place = 0

  init(_ text: UnsafeBufferPointer<UInt8>) {
    self.text = text
  }

  mutating func next() -> String? {
    while let byte = peek() {
      if let name = quotedFunction() { return name }
      if skipCommentOrString() { continue }
      guard Self.isLetter(byte) else {
        place += 1
        continue
      }
      let start = place
      while let byte = peek(), Self.isLetter(byte) || Self.isDigit(byte) { place += 1 }
      return word(start..<place)
    }
    return nil
  }

  mutating func contains(_ wanted: String) -> Bool {
    while let word = next() { if word == wanted { return true } }
    return false
  }

  /// Whether something temporary follows CREATE or INTO.
  mutating func nextIsTemporary() -> Bool {
    while let word = next() {
      switch word {
      case "TEMP", "TEMPORARY", "PG_TEMP": return true
      case "OR", "REPLACE", "LOCAL", "GLOBAL", "TABLE": continue
      default: return false
      }
    }
    return false
  }

  /// Whether the call that begins here has the literal `true` as its last argument.
  mutating func lastArgumentIsTrue() -> Bool {
    var depth = 0
    var argument: [UInt8] = []
    while let byte = peek() {
      let start = place
      if skipCommentOrString() {
        argument += text[start..<place]
        continue
      }
      place += 1
      switch byte {
      case UInt8(ascii: "("):
        depth += 1
        argument = []
      case UInt8(ascii: ")"):
        depth -= 1
        if depth == 0 { return String(decoding: argument, as: UTF8.self).lowercased() == "true" }
      case UInt8(ascii: ",") where depth == 1: argument = []
      case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\t"): continue
      default: argument.append(byte)
      }
    }
    return false
  }

  private func peek(_ offset: Int = 0) -> UInt8? {
    place + offset < text.count ? text[place + offset] : nil
  }

  private func word(_ range: Range<Int>) -> String {
    String(decoding: text[range], as: UTF8.self).uppercased()
  }

  // MARK: Quotes and comments

  private mutating func skipCommentOrString() -> Bool {
    switch (peek(), peek(1)) {
    case (UInt8(ascii: "-"), UInt8(ascii: "-")):
      while let byte = peek(), byte != UInt8(ascii: "\n") { place += 1 }
    case (UInt8(ascii: "/"), UInt8(ascii: "*")):
      var depth = 0
      repeat {
        switch (peek(), peek(1)) {
        case (nil, _): return true
        case (UInt8(ascii: "/"), UInt8(ascii: "*")): (depth, place) = (depth + 1, place + 2)
        case (UInt8(ascii: "*"), UInt8(ascii: "/")): (depth, place) = (depth - 1, place + 2)
        default: place += 1
        }
      } while depth > 0
    case (UInt8(ascii: "'"), _), (UInt8(ascii: "\""), _): skipQuoted(isEscaping: false)
    case (UInt8(ascii: "e"), UInt8(ascii: "'")) where isAtWord, (UInt8(ascii: "E"), UInt8(ascii: "'")) where isAtWord:
      place += 1
      skipQuoted(isEscaping: true)
    case (UInt8(ascii: "$"), _) where isAtWord: return skipDollarQuoted()
    default: return false
    }
    return true
  }

  /// - Parameter isEscaping: whether a backslash escapes the next character, as in `E'it\'s'`.
  private mutating func skipQuoted(isEscaping: Bool) {
    let quote = peek()
    repeat {
      place += isEscaping && peek() == UInt8(ascii: "\\") ? 2 : 1
    } while peek() != nil && peek() != quote
    // The string may lack its end.
    place = min(place + 1, text.count)
  }

  /// Whether no word continues here.
  private var isAtWord: Bool {
    place == 0 || !Self.isLetter(text[place - 1]) && !Self.isDigit(text[place - 1])
  }

  /// Skips a quoted name in front of a parenthesis.
  private mutating func quotedFunction() -> String? {
    guard peek() == UInt8(ascii: "\"") else { return nil }
    let start = place
    skipQuoted(isEscaping: false)
    let name = start + 1..<max(start + 1, place - 1)
    var next = 0
    while peek(next) == UInt8(ascii: " ") { next += 1 }
    if peek(next) == UInt8(ascii: "(") { return word(name) }
    place = start
    return nil
  }

  /// Skips a string between dollar quotes, such as `$$` or `$body$`.
  private mutating func skipDollarQuoted() -> Bool {
    var length = 1
    while let byte = peek(length), Self.isLetter(byte) || length > 1 && byte != UInt8(ascii: "$") && Self.isDigit(byte)
    {
      length += 1
    }
    guard peek(length) == UInt8(ascii: "$") else { return false }
    let quote = text[place...place + length]
    place += length + 1
    while place + quote.count <= text.count, !text[place..<place + quote.count].elementsEqual(quote) { place += 1 }
    // The string may lack its end.
    place = min(place + quote.count, text.count)
    return true
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z") || byte == UInt8(ascii: "_") || byte >= 0x80
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") || byte == UInt8(ascii: "$")
  }
}
