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
