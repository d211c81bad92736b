/// The place of a value in a ``CompiledSQL``.
public struct SQLArgument<Value: SQLValue>: SQLExpression {
  let number: Int

  public typealias Expressed = Value

  public var placeholder: SQL { "\(self)" }
}
