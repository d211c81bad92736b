/// The outcome of encoding a value.
public enum SQLEncoding: Sendable {
  /// The value's bytes were appended to the buffer.
  case bytes
  /// The value is NULL. Nothing was appended.
  case null
  /// PostgreSQL cannot represent the value: text with U+0000, or a time out of range. The statement is rejected before
  /// it is sent.
  case unrepresentable
}
