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

    /// `$1`, `$2` and so on.
    struct Parameter: Equatable, Sendable {
      var number: Int32
      /// As in `pg_type.oid`.
      let type: UInt32
    }

    /// Stands before the text.
    var prefix: Comment?
    private(set) var pieces: [Piece] = []
    private(set) var parameterCount = 0
    private var unescaped: [String] = []
    /// No less than the bytes of the text after the prefix.
    private var length = 0

    init(_ text: StaticString) {
      append(text)
    }

    mutating func reserveCapacity(_ count: Int) {
      pieces.reserveCapacity(count)
    }

    mutating func append(_ literal: StaticString) {
      guard literal.utf8CodeUnitCount > 0 else { return }
      pieces.append(.literal(literal))
      length += literal.utf8CodeUnitCount
    }

    mutating func append(unescaped text: String) {
      pieces.append(.unescaped(unescaped.count))
      unescaped.append(text)
      length += text.utf8.count
    }

    /// Appends the next parameter.
    mutating func append(typeOfNext type: UInt32) {
      parameterCount += 1
      append(argument: parameterCount, type: type)
    }

    /// Appends the place of an argument, which counts as a parameter from ``takeArguments(of:)`` on.
    mutating func append(argument number: Int, type: UInt32) {
      pieces.append(.parameter(Parameter(number: Int32(clamping: number), type: type)))
      length += Self.parameterLength
    }

    /// A dollar sign and at most seven digits: a larger number is reported before it is sent, and needs them as well.
    private static let parameterLength = 8

    /// Makes arguments with these types the parameters. All must occur: the pieces alone identify a prepared statement.
    ///
    /// - Returns: false if the pieces have other parameters, or lack one.
    mutating func takeArguments(of types: [UInt32]) -> Bool {
      var found: Set<Int32> = []
      for case .parameter(let parameter) in pieces {
        let index = Int(parameter.number) - 1
        guard types.indices.contains(index), types[index] == parameter.type else { return false }
        found.insert(parameter.number)
      }
      guard parameterCount == 0, found.count == types.count else { return false }
      parameterCount = types.count
      return true
    }

    /// Appends the pieces of another statement, whose numbers count on from those of this one.
    mutating func append(_ other: Template) {
      let start = pieces.count
      pieces += other.pieces
      if parameterCount > 0 && other.parameterCount > 0 || !unescaped.isEmpty && !other.unescaped.isEmpty {
        for index in start..<pieces.count {
          switch pieces[index] {
          case .literal: break
          case .unescaped(let text): pieces[index] = .unescaped(unescaped.count + text)
          case .parameter(var parameter):
            parameter.number += Int32(parameterCount)
            pieces[index] = .parameter(parameter)
          }
        }
      }
      parameterCount += other.parameterCount
      if !other.unescaped.isEmpty { unescaped += other.unescaped }
      length += other.length
    }

    /// Rebuilt at each call.
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
        for piece in pieces {
          switch piece {
          case .literal(let text): text.withUTF8Buffer { append($0) }
          case .unescaped(let index): append(unescaped[index])
          case .parameter(let parameter): append("$\(parameter.number)")
          }
        }
        return buffer.count - rest.count
      }
    }

    private var capacity: Int { length + (prefix?.text.utf8.count ?? 0) }
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
    case (.parameter(let left), .parameter(let right)): left == right
    default: false
    }
  }
}
