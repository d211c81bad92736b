import Foundation

/// A user, as lists show them.
public struct Person: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  public var username: String
  public var displayName: String
  /// Names one picture forever, and needs no token: cache it for as long as you like. A JPEG of at most 2048 pixels a
  /// side; `?size=768` and `?size=192` are smaller.
  public var pictureUrl: URL?

  public init(id: UUID, username: String, displayName: String, pictureUrl: URL? = nil) {
    self.id = id
    self.username = username
    self.displayName = displayName
    self.pictureUrl = pictureUrl
  }
}
