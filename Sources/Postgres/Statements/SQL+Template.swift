import Foundation

extension SQL {
  /// The text of a statement in pieces. They identify the prepared statement, so that a statement that is sent again
  /// needs no text.
  struct Template: Sendable {
    enum Piece: Sendable {
      case literal(StaticString)
      case unescaped(String)
      /// The next one of the statement's parameters.
      case parameter
    }

    /// Stands before the text.
    var prefix: Comment?
    var pieces: [Piece] = []

    init(_ text: StaticString) {
      append(text)
    }

    mutating func append(_ literal: StaticString) {
      if literal.utf8CodeUnitCount > 0 { pieces.append(.literal(literal)) }
    }

    var text: String {
      // Bytes in one buffer are several times cheaper than strings that are appended one by one.
      String(unsafeUninitializedCapacity: capacity) { buffer in
        var rest = UnsafeMutableBufferPointer(rebasing: buffer[...])
        func append(_ bytes: UnsafeBufferPointer<UInt8>) {
          let end = rest.update(fromContentsOf: bytes)
          rest = UnsafeMutableBufferPointer(rebasing: rest[end...])
        }
        func append(_ text: String) {
          var text = text
          text.withUTF8 { append($0) }
        }
        if let prefix { append(prefix.text) }
        var number = 0
        for piece in pieces {
          switch piece {
          case .literal(let text): text.withUTF8Buffer { append($0) }
          case .unescaped(let text): append(text)
          case .parameter:
            number += 1
            append("$\(number)")
          }
        }
        return buffer.count - rest.count
      }
    }

    /// No less than the bytes of the text.
    private var capacity: Int {
      pieces.reduce(prefix?.text.utf8.count ?? 0) { $0 + $1.capacity }
    }
  }
}

extension SQL.Template: Hashable {
  /// The same text in other pieces is another statement.
  static func == (left: SQL.Template, right: SQL.Template) -> Bool {
    left.prefix?.text == right.prefix?.text && left.pieces == right.pieces
  }

  /// Hashes only the lengths: texts are long, and few have the same length.
  func hash(into hasher: inout Hasher) {
    hasher.combine(capacity)
  }
}

extension SQL.Template.Piece: Equatable {
  fileprivate var capacity: Int {
    switch self {
    case .literal(let text): text.utf8CodeUnitCount
    case .unescaped(let text): text.utf8.count
    // A dollar sign and at most seven digits: a larger number is reported before it is sent, and needs them as well.
    case .parameter: 8
    }
  }

  static func == (left: SQL.Template.Piece, right: SQL.Template.Piece) -> Bool {
    switch (left, right) {
    case (.literal(let left), .literal(let right)):
      // A literal is mostly compared with itself.
      left.utf8CodeUnitCount == right.utf8CodeUnitCount
        && (left.utf8Start == right.utf8Start || memcmp(left.utf8Start, right.utf8Start, left.utf8CodeUnitCount) == 0)
    case (.unescaped(let left), .unescaped(let right)): left == right
    case (.parameter, .parameter): true
    default: false
    }
  }
}
