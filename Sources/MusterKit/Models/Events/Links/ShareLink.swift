import Foundation

/// A link to a page about an event.
public struct ShareLink: Codable, Sendable, Hashable, Identifiable {
  /// What a link is for.
  public struct Kind: WireValue {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// Shows the page.
    public static let view: Self = "view"
    /// Others can also join the event.
    public static let answer: Self = "answer"
  }

  /// What the page shows of the guests.
  public struct Shows: WireValue {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public static let counts: Self = "counts"
    /// The counts, and the names of the guests who are going.
    public static let names: Self = "names"
  }

  /// Whether the page asks visitors for an e-mail address.
  public struct Email: WireValue {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public static let required: Self = "required"
    public static let optional: Self = "optional"
    /// It asks for none.
    public static let off: Self = "none"
  }

  public var id: UUID
  /// The page. Nil if the operator has removed the key that made it: the link is then dead.
  public var url: URL?
  public var kind: Kind
  public var shows: Shows
  /// Nil: when the event is archived.
  public var expiresAt: Date?
  /// The number of guests who may join through the link; nil for no limit.
  public var maxGuests: Int?
  /// The number of people whom a visitor may bring along.
  public var maxPlusOnes: Int
  public var email: Email
  /// Whether a host approves each guest who joins.
  public var approval: Bool
  /// The number of guests who have joined through the link, whether or not they are still guests.
  public var joined: Int
  /// The visitors whom the server has sent no e-mail to confirm their address, because a limit on mails is reached.
  /// Their answers end after 24 hours, unless they confirm, or a host approves them.
  public var unmailed: Int
  public var createdAt: Date

  public init(
    id: UUID, url: URL?, kind: Kind, shows: Shows = .counts, expiresAt: Date? = nil, maxGuests: Int? = nil,
    maxPlusOnes: Int = 0, email: Email = .off, approval: Bool = false, joined: Int = 0, unmailed: Int = 0,
    createdAt: Date
  ) {
    self.id = id
    self.url = url
    self.kind = kind
    self.shows = shows
    self.expiresAt = expiresAt
    self.maxGuests = maxGuests
    self.maxPlusOnes = maxPlusOnes
    self.email = email
    self.approval = approval
    self.joined = joined
    self.unmailed = unmailed
    self.createdAt = createdAt
  }

  /// The token of a link, for ``LinksAPI/join(using:key:)``. Nil for a URL that is not a share link.
  public static func token(in url: URL) -> String? {
    let parts = url.pathComponents
    return parts.count >= 2 && parts[parts.count - 2] == "e" ? parts.last : nil
  }
}

extension ShareLink {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      id: try container.decode(UUID.self, forKey: .id),
      url: try container.decodeIfPresent(URL.self, forKey: .url),
      kind: try container.decode(Kind.self, forKey: .kind),
      shows: try container.decodeIfPresent(Shows.self, forKey: .shows) ?? .counts,
      expiresAt: try container.decodeIfPresent(Date.self, forKey: .expiresAt),
      maxGuests: try container.decodeIfPresent(Int.self, forKey: .maxGuests),
      maxPlusOnes: try container.decodeIfPresent(Int.self, forKey: .maxPlusOnes) ?? 0,
      email: try container.decodeIfPresent(Email.self, forKey: .email) ?? .off,
      approval: try container.decodeIfPresent(Bool.self, forKey: .approval) ?? false,
      joined: try container.decodeIfPresent(Int.self, forKey: .joined) ?? 0,
      unmailed: try container.decodeIfPresent(Int.self, forKey: .unmailed) ?? 0,
      createdAt: try container.decode(Date.self, forKey: .createdAt))
  }
}
