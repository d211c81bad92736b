/// A statement that is assembled once, for statements of many fragments that are sent often:
///
///     static let title = CompiledSQL { (id: SQLArgument<UUID>) in "SELECT title FROM events WHERE id = \(id)" }
///     let title: String? = try await database.value(Self.title(id))
///
/// An argument may stand in several places. Its value is sent once.
public struct CompiledSQL<each Value: SQLValue>: Sendable {
  @usableFromInline let text: SQL

  /// - Parameter build: makes the text, once. It must interpolate each of its arguments, and no other values.
  public init(_ build: (repeat SQLArgument<each Value>) -> SQL) {
    var types: [UInt32] = []
    func argument<One: SQLValue>(_: One.Type) -> SQLArgument<One> {
      types.append(One.sqlType.oid)
      return SQLArgument(number: types.count)
    }
    var text = build(repeat argument((each Value).self))
    precondition(text.template.takeArguments(of: types), "not exactly the arguments: \(text.text)")
    self.text = text
  }

  /// The statement with these values.
  @inlinable
  public func callAsFunction(_ values: repeat each Value) -> SQL {
    var statement = text
    var number = 0
    for value in repeat each values {
      number += 1
      statement.appendBytes(of: value, number: number)
    }
    return statement
  }
}

/// The place of a value in a ``CompiledSQL``.
public struct SQLArgument<Value: SQLValue>: SQLExpression {
  let number: Int

  public typealias Expressed = Value

  public var placeholder: SQL { "\(self)" }
}

/// A stand-in for a value in a statement: the value itself, or an argument of a ``CompiledSQL``. Functions that make
/// fragments take it, so that they serve both kinds of statements:
///
///     func isMine(_ me: some SQLExpression<UUID>) -> SQL { "owner_id = \(me)" }
public protocol SQLExpression<Expressed>: Sendable {
  /// The type of the value.
  associatedtype Expressed
  /// A fragment that is only the parameter: `$1`.
  var placeholder: SQL { get }
}

extension SQLValue {
  public var placeholder: SQL { "\(self)" }
}
