/// The time of a collection's last change for the caller, as the exact text of the API. Send it back unchanged: a
/// `Date` cannot hold it.
public struct Stamp: RawRepresentable, Hashable, Codable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public init(stringLiteral value: String) { self.init(rawValue: value) }

  public var description: String { rawValue }
}
