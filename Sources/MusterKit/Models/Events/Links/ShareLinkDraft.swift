import Foundation

/// A new share link. Nil stands for the service's default.
public struct ShareLinkDraft: Codable, Sendable, Hashable {
  public var kind: ShareLink.Kind
  public var shows: ShareLink.Shows
  /// Must be in the future.
  public var expiresAt: Date?
  public var maxGuests: Int?
  /// The number of people whom a visitor may bring along.
  public var maxPlusOnes: Int?
  public var email: ShareLink.Email?
  /// Whether a host approves each guest who joins: yes, unless this is false.
  public var approval: Bool?

  public init(
    kind: ShareLink.Kind, shows: ShareLink.Shows = .counts, expiresAt: Date? = nil, maxGuests: Int? = nil,
    maxPlusOnes: Int? = nil, email: ShareLink.Email? = nil, approval: Bool? = nil
  ) {
    self.kind = kind
    self.shows = shows
    self.expiresAt = expiresAt
    self.maxGuests = maxGuests
    self.maxPlusOnes = maxPlusOnes
    self.email = email
    self.approval = approval
  }
}
