import Foundation

extension SQL {
  /// The text of a statement in pieces, with the places of its parameters. The pieces identify the prepared statement,
  /// so that a statement that is sent again needs no text.
  struct Template: Sendable {
    /// Without references, so that arrays of pieces are copied as bytes.
    enum Piece: Sendable {
      case literal(StaticString)
      /// An index in `unescaped`.
      case unescaped(Int)
      case parameter(Parameter)
    }

    /// A parameter's type, and where its value is in the bytes of the statement.
    struct Parameter: Sendable {
      let type: UInt32
      /// -1 for NULL.
      let length: Int32
      let start: Int
    }

    /// Stands before the text.
    var prefix: Comment?
    private(set) var pieces: [Piece] = []
    private(set) var parameterCount = 0
    private var unescaped: [String] = []

    init(_ text: StaticString) {
      append(text)
    }

    mutating func reserveCapacity(_ count: Int) {
      pieces.reserveCapacity(count)
    }

    mutating func append(_ literal: StaticString) {
      if literal.utf8CodeUnitCount > 0 { pieces.append(.literal(literal)) }
    }

    mutating func append(unescaped text: String) {
      pieces.append(.unescaped(unescaped.count))
      unescaped.append(text)
    }

    mutating func append(_ parameter: Parameter) {
      pieces.append(.parameter(parameter))
      parameterCount += 1
    }

    /// - Parameter offset: where the bytes of the other statement begin in those of this one.
    mutating func append(_ other: Template, offset: Int) {
      if other.unescaped.isEmpty, other.parameterCount == 0 || offset == 0 {
        pieces += other.pieces
      } else {
        for piece in other.pieces { pieces.append(moved(piece, by: offset)) }
        unescaped += other.unescaped
      }
      parameterCount += other.parameterCount
    }

    private func moved(_ piece: Piece, by offset: Int) -> Piece {
      switch piece {
      case .literal: piece
      case .unescaped(let index): .unescaped(unescaped.count + index)
      case .parameter(let parameter):
        .parameter(Parameter(type: parameter.type, length: parameter.length, start: parameter.start + offset))
      }
    }

    /// Whether the server infers types. They are a part of the prepared statement, so a change of the schema can make it
    /// fail.
    var hasInferredTypes: Bool { types.contains(0) }

    /// The types of the parameters, as in `pg_type.oid`.
    var types: [UInt32] {
      pieces.compactMap { if case .parameter(let parameter) = $0 { parameter.type } else { nil } }
    }

    /// Built anew at each call.
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
          case .unescaped(let index): append(unescaped[index])
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
      var capacity = prefix?.text.utf8.count ?? 0
      for piece in pieces {
        switch piece {
        case .literal(let text): capacity += text.utf8CodeUnitCount
        case .unescaped(let index): capacity += unescaped[index].utf8.count
        // A dollar sign and at most seven digits: a larger number is reported before it is sent, and needs them as well.
        case .parameter: capacity += 8
        }
      }
      return capacity
    }
  }
}

extension SQL.Template: Hashable {
  /// The same text in other pieces, or with other types of parameters, is another statement.
  static func == (left: SQL.Template, right: SQL.Template) -> Bool {
    left.prefix?.text == right.prefix?.text && left.pieces == right.pieces && left.unescaped == right.unescaped
  }

  /// Hashes only the lengths: texts are long, and few have the same length.
  func hash(into hasher: inout Hasher) {
    hasher.combine(capacity)
  }
}

extension SQL.Template.Piece: Equatable {
  static func == (left: SQL.Template.Piece, right: SQL.Template.Piece) -> Bool {
    switch (left, right) {
    case (.literal(let left), .literal(let right)):
      // A literal is mostly compared with itself.
      left.utf8CodeUnitCount == right.utf8CodeUnitCount
        && (left.utf8Start == right.utf8Start || memcmp(left.utf8Start, right.utf8Start, left.utf8CodeUnitCount) == 0)
    case (.unescaped(let left), .unescaped(let right)): left == right
    case (.parameter(let left), .parameter(let right)): left.type == right.type
    default: false
    }
  }
}
