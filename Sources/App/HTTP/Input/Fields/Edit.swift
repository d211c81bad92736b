/// The effect of a PATCH on a field.
enum Edit<Value: Sendable>: Sendable {
  case keep
  case set(Value)

  func applied(to old: Value) -> Value {
    switch self {
    case .keep: old
    case .set(let new): new
    }
  }
}
