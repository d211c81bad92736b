/// What a statement changes in its session, judged by its text. A function or a DO block may hide more.
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
    var words = Words(text)
    let first = words.next()
    self = Self.ofCommand(first, &words)
    guard self < .session else { return }
    while let word = words.next() {
      switch word {
      case "PG_ADVISORY_LOCK", "PG_ADVISORY_LOCK_SHARED", "PG_TRY_ADVISORY_LOCK", "PG_TRY_ADVISORY_LOCK_SHARED":
        self = .session
      case "SET_CONFIG":
        if !words.lastArgumentIsTrue() { self = .session }
      case "INTO":
        if let next = words.next(), next == "TEMP" || next == "TEMPORARY" { self = .session }
      default: continue
      }
      if self == .session { return }
    }
  }

  private static func ofCommand(_ command: String?, _ words: inout Words) -> SessionEffect {
    switch command {
    case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE": return .transaction
    case "RESET", "LISTEN", "UNLISTEN", "DEALLOCATE", "DISCARD", "LOAD": return .session
    case "PREPARE": return words.next() == "TRANSACTION" ? .transaction : .session
    case "DECLARE": return words.contains("HOLD") ? .session : .none
    case "CREATE":
      var next = words.next()
      if next == "LOCAL" || next == "GLOBAL" { next = words.next() }
      return next == "TEMP" || next == "TEMPORARY" ? .session : .none
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

/// The words of a statement in upper case, without comments and strings. A quoted name counts as a string.
private struct Words {
  private let text: UnsafeBufferPointer<UInt8>
  private var place = 0

  init(_ text: UnsafeBufferPointer<UInt8>) {
    self.text = text
  }

  mutating func next() -> String? {
    while let byte = peek() {
      if skipCommentOrString() { continue }
      guard Self.isLetter(byte) else {
        place += 1
        continue
      }
      let start = place
      while let byte = peek(), Self.isLetter(byte) || Self.isDigit(byte) { place += 1 }
      return String(decoding: text[start..<place], as: UTF8.self).uppercased()
    }
    return nil
  }

  mutating func contains(_ wanted: String) -> Bool {
    while let word = next() { if word == wanted { return true } }
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
    case (UInt8(ascii: "'"), _), (UInt8(ascii: "\""), _):
      let quote = peek()
      repeat { place += 1 } while peek() != nil && peek() != quote
      // The string may lack its end.
      place = min(place + 1, text.count)
    default: return false
    }
    return true
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z") || byte == UInt8(ascii: "_") || byte >= 0x80
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") || byte == UInt8(ascii: "$")
  }
}
