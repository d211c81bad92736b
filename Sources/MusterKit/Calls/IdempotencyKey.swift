import Foundation

/// Makes a write safe to repeat: the service carries out requests with the same key once. A key belongs to one user,
/// one call and one set of arguments, for 23 hours.
public struct IdempotencyKey: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible {
  /// 1 to 255 visible ASCII characters.
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static func random() -> Self { Self(rawValue: UUID().wire) }

  public var description: String { rawValue }
}
