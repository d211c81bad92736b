/// A word of the API, such as a status. Later releases may add more. Values that this release does not know also
/// decode: show them without actions.
public protocol WireValue: RawRepresentable, Hashable, Codable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
where RawValue == String {
  init(rawValue: String)
}

extension WireValue {
  public init(stringLiteral value: String) { self.init(rawValue: value) }

  public var description: String { rawValue }
}
