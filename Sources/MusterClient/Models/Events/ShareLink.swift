import Foundation

/// A link to a page about an event.
public struct ShareLink: Codable, Sendable, Hashable, Identifiable {
  /// What a link is for.
  public struct Kind: WireValue {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// Shows the page.
    public static let view: Self = "view"
    /// Users can also join the event.
    public static let answer: Self = "answer"
  }

  /// What the page shows of the guests.
  public struct Shows: WireValue {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public static let counts: Self = "counts"
    /// Also the names of those who go.
    public static let names: Self = "names"
  }

  public var id: UUID
  /// The page. Nil if the operator has removed the key that made it: the link is then dead.
  public var url: URL?
  public var kind: Kind
  public var shows: Shows
  /// Nil: when the event is archived.
  public var expiresAt: Date?
  /// The number of guests that may join by the link; nil for no limit.
  public var maxGuests: Int?
  /// How many guests have joined by the link, whether or not they still are guests.
  public var joined: Int
  public var createdAt: Date

  /// The token of a link, for ``LinksAPI/join(_:key:)``. Nil for a URL that is no share link.
  public static func token(in url: URL) -> String? {
    let parts = url.pathComponents
    return parts.count >= 2 && parts[parts.count - 2] == "e" ? parts.last : nil
  }
}

/// A new share link.
public struct ShareLinkDraft: Codable, Sendable, Hashable {
  public var kind: ShareLink.Kind
  public var shows: ShareLink.Shows
  /// Must be in the future.
  public var expiresAt: Date?
  public var maxGuests: Int?

  public init(
    kind: ShareLink.Kind, shows: ShareLink.Shows = .counts, expiresAt: Date? = nil, maxGuests: Int? = nil
  ) {
    self.kind = kind
    self.shows = shows
    self.expiresAt = expiresAt
    self.maxGuests = maxGuests
  }
}

/// A change of a share link. Nil and `.keep` leave a value as it is.
public struct ShareLinkEdit: Codable, Sendable, Hashable {
  public var kind: ShareLink.Kind?
  public var shows: ShareLink.Shows?
  public var expiresAt: Edit<Date>
  public var maxGuests: Edit<Int>

  public init(
    kind: ShareLink.Kind? = nil, shows: ShareLink.Shows? = nil, expiresAt: Edit<Date> = .keep,
    maxGuests: Edit<Int> = .keep
  ) {
    self.kind = kind
    self.shows = shows
    self.expiresAt = expiresAt
    self.maxGuests = maxGuests
  }
}
