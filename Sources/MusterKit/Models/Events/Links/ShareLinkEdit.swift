import Foundation

/// A change of a share link. Nil and `.keep` leave a value as it is.
public struct ShareLinkEdit: Codable, Sendable, Hashable {
  public var kind: ShareLink.Kind?
  public var shows: ShareLink.Shows?
  public var expiresAt: Edit<Date>
  public var maxGuests: Edit<Int>
  public var maxPlusOnes: Int?
  public var email: ShareLink.Email?
  public var approval: Bool?

  public init(
    kind: ShareLink.Kind? = nil, shows: ShareLink.Shows? = nil, expiresAt: Edit<Date> = .keep,
    maxGuests: Edit<Int> = .keep, maxPlusOnes: Int? = nil, email: ShareLink.Email? = nil, approval: Bool? = nil
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
