/// A changed field of an event.
public struct FieldChange: Codable, Sendable, Hashable {
  /// Such as `title`, `startTime` or `capacity`.
  public var field: String
  /// The value before, as the event shows it.
  public var old: JSONValue
  /// The value after, as the event shows it.
  public var new: JSONValue

  public init(field: String, old: JSONValue = .null, new: JSONValue = .null) {
    self.field = field
    self.old = old
    self.new = new
  }
}
