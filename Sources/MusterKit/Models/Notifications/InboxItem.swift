import Foundation

/// A notification in the inbox. The members after `locArgs` depend on `type`.
public struct InboxItem: Codable, Sendable, Hashable, Identifiable {
  /// The same in the inbox, in the stream and on devices.
  public var id: UUID
  /// The time of the change.
  public var createdAt: Date
  /// The time when it was marked as read; nil until then.
  public var readAt: Date?
  public var type: NotificationType
  /// A sentence for a lock screen, in English.
  public var message: String
  /// The key of the sentence, for translations.
  public var locKey: String
  /// The parts of the sentence that are not English.
  public var locArgs: [String]
  public var userId: UUID?
  /// A guest's entry in the guest list: a visitor has no account.
  public var guestId: UUID?
  public var eventId: UUID?
  public var requestId: UUID?
  public var proposalId: UUID?
  public var sessionId: UUID?
  public var status: InvitationStatus?
  /// The number of people whom the guest brings along; nil for none.
  public var plusOnes: Int?
  /// The event's title at the time of the change.
  public var title: String?
  /// The display name of the user whom the notification names.
  public var actor: String?
  public var start: Date?
  /// Why an event changed, if no host changed it: `zone-rules` if the rules of its time zone have changed, and it keeps
  /// its local time. Later releases may add causes.
  public var cause: String?
  public var changes: [FieldChange]?
  /// What an account that its owner has claimed still has from before: the numbers of friends, events and links.
  public var friends: Int?
  public var events: Int?
  public var links: Int?
  /// The number of visitors, if the notification is about several ones.
  public var count: Int?
  /// How many of them wait for approval.
  public var pending: Int?
  /// Some of them.
  public var guests: [NamedGuest]?

  /// A visitor whom a notification about several visitors names.
  public struct NamedGuest: Codable, Sendable, Hashable {
    public var guestId: UUID
    public var name: String

    public init(guestId: UUID, name: String) {
      self.guestId = guestId
      self.name = name
    }
  }

  public init(
    id: UUID, createdAt: Date, readAt: Date? = nil, type: NotificationType, message: String, locKey: String = "",
    locArgs: [String] = [], userId: UUID? = nil, guestId: UUID? = nil, eventId: UUID? = nil, requestId: UUID? = nil,
    proposalId: UUID? = nil, sessionId: UUID? = nil,
    status: InvitationStatus? = nil, plusOnes: Int? = nil, title: String? = nil, actor: String? = nil,
    start: Date? = nil, cause: String? = nil,
    changes: [FieldChange]? = nil, friends: Int? = nil, events: Int? = nil, links: Int? = nil, count: Int? = nil,
    pending: Int? = nil, guests: [NamedGuest]? = nil
  ) {
    self.id = id
    self.createdAt = createdAt
    self.readAt = readAt
    self.type = type
    self.message = message
    self.locKey = locKey
    self.locArgs = locArgs
    self.userId = userId
    self.guestId = guestId
    self.eventId = eventId
    self.requestId = requestId
    self.proposalId = proposalId
    self.sessionId = sessionId
    self.status = status
    self.plusOnes = plusOnes
    self.title = title
    self.actor = actor
    self.start = start
    self.cause = cause
    self.changes = changes
    self.friends = friends
    self.events = events
    self.links = links
    self.count = count
    self.pending = pending
    self.guests = guests
  }
}
