/// A model of the contract: users, what they are to each other, their plans, and their notifications. It searches plain
/// arrays and derives everything that can be counted. It shares nothing with the service's implementation, and need not
/// be fast.
///
/// Users, requests, events, links and visitors are known by their indices in the arrays. Each verb returns the status of
/// the response, or the statuses that the contract allows: several if the contract does not say whether a verb without
/// effect is refused.
struct Model {
  var people: [Person] = []
  var requests: [Request] = []
  var friendships: [Friendship] = []
  var blocks: [Block] = []
  var events: [Event] = []
  var invitations: [Invitation] = []
  /// Open offers to host an event.
  var offers: [Offer] = []
  var links: [Link] = []
  /// The links that a host has revoked, those of deleted accounts, and those of co-hosts whose role has ended.
  var revoked: Set<Int> = []
  var visitors: [Visitor] = []
  var queue: [Notice] = []
  /// The inboxes of all users, oldest first. Notices move here from the queue when they are delivered.
  var inbox: [Notice] = []
  var mutings: [Muting] = []
  var clock = 0

  static let done: Set<Int> = [200, 201, 204]
  static let doneOrMissing: Set<Int> = [200, 201, 204, 404]

  // MARK: Things

  struct Person {
    let id: String
    let email: String
    var username: String
    var displayName: String
    var bio: String?
    /// Whether the account has verified its address.
    var isVerified = false
    var isGone = false
  }

  struct Request {
    let id: String
    let sender: Int
    let receiver: Int
    /// `ended` if an account was deleted. No one sees the request then.
    var status = "pending"
    /// Whether it waits apart from the receiver's other requests.
    var isFiltered = false

    func isBetween(_ one: Int, _ other: Int) -> Bool { Set([sender, receiver]) == [one, other] }
  }

  struct Friendship {
    let one: Int
    let other: Int

    func isOf(_ person: Int) -> Bool { one == person || other == person }

    func isBetween(_ person: Int, _ friend: Int) -> Bool { Set([one, other]) == [person, friend] }
  }

  struct Block: Equatable {
    let by: Int
    let of: Int
  }

  struct Plan {
    var title: String
    var note: String?
    var start: String
    var end: String?
    var location: String?
    var url: String?
    var capacity: Int?
    var answerBy: String?
    var maxPlusOnes = 0

    /// The fields that an edit may change.
    var fields: [(name: String, value: String?)] {
      [
        ("title", title), ("note", note), ("startTime", start), ("endTime", end), ("location", location), ("url", url),
        ("capacity", capacity.map(String.init)), ("answerBy", answerBy), ("maxPlusOnes", String(maxPlusOnes)),
      ]
    }

    /// Whether the event is over. Tests use events that were over long ago, and events that are years ahead.
    var isOver: Bool { start < "2025" }
    /// Whether only hosts set answers. Deadlines passed long ago, or are years ahead.
    var isPastAnswers: Bool { answerBy.map { $0 < "2025" } ?? false }
  }

  struct Event {
    let id: String
    var creator: Int
    /// By when they were added.
    var coHosts: [Int] = []
    /// The former co-hosts whose role others have ended. No link admits them.
    var removed: Set<Int> = []
    var plan: Plan
    var status = "scheduled"
    var version = 1
    var isArchived = false

    /// The creator first.
    var hosts: [Int] { [creator] + coHosts }

    /// Whether the event can no longer change.
    var isClosed: Bool { status == "cancelled" || isArchived }
    /// Whether the event can no longer change, or has taken place.
    var isPast: Bool { isClosed || plan.isOver }
    /// Whether guests, and not only hosts, still answer.
    var takesAnswers: Bool { !isPast && !plan.isPastAnswers }
  }

  /// Someone on the list of an event, with or without an account.
  enum Guest: Hashable {
    case user(Int), visitor(Int)

    var user: Int? { if case .user(let user) = self { user } else { nil } }
    var visitor: Int? { if case .visitor(let visitor) = self { visitor } else { nil } }
  }

  struct Invitation {
    let event: Int
    let guest: Guest
    var status = "invited"
    var plusOnes = 0
    /// The answer that a pending visitor wants.
    var wanted: String?
    /// The time of the last answer, on the model's clock; 0 for none.
    var answered = 0
    var isReminded = false

    var places: Int { 1 + plusOnes }

    func isSameAnswer(as other: Invitation) -> Bool {
      (status, plusOnes, wanted) == (other.status, other.plusOnes, other.wanted)
    }
  }

  /// A share link of kind `answer`.
  struct Link {
    let id: String
    let event: Int
    /// The host who made it.
    let by: Int
    let token: String
    let maxPlusOnes: Int
    let approval: Bool
  }

  /// An offer to host an event that was not accepted.
  struct Offer {
    let id: String
    let event: Int
    let user: Int
  }

  /// A guest without an account.
  struct Visitor {
    let id: String
    let name: String
    let link: Int
    /// Of their page.
    let token: String
    let email: String?
    var isConfirmed = false
    /// The account that has the address, and gets the answer at the next merge.
    var account: Int?
    /// Whether the account decides about the answer.
    var isProposed = false
  }

  // MARK: Who sees what

  var present: [Int] { people.indices.filter { !people[$0].isGone } }

  func areFriends(_ one: Int, _ other: Int) -> Bool { friendships.contains { $0.isBetween(one, other) } }

  func isHidden(_ one: Int, from other: Int) -> Bool {
    blocks.contains(Block(by: one, of: other)) || blocks.contains(Block(by: other, of: one))
  }

  /// Whether a block hides a user from a host of an event.
  func isHidden(_ user: Int, fromHostsOf event: Int) -> Bool {
    events[event].hosts.contains { isHidden($0, from: user) }
  }

  /// Visitors have no account that could be blocked.
  func isHidden(_ guest: Guest, from user: Int) -> Bool { guest.user.map { isHidden($0, from: user) } ?? false }

  func friends(of person: Int) -> [Int] { people.indices.filter { areFriends(person, $0) } }

  func invitation(of guest: Guest, to event: Int) -> Int? {
    invitations.firstIndex { $0.event == event && $0.guest == guest }
  }

  /// A visitor is a guest of one event only.
  func invitation(ofVisitor visitor: Int) -> Int? { invitations.firstIndex { $0.guest == .visitor(visitor) } }

  func guests(of event: Int) -> [Guest] { invitations.filter { $0.event == event }.map(\.guest) }

  /// The guests with an account.
  func invitees(of event: Int) -> [Int] { guests(of: event).compactMap(\.user) }

  /// The visitors of an event whose answers wait for the decision of an account.
  func proposedVisitors(at event: Int) -> [Int] {
    visitors.indices.filter { visitors[$0].isProposed && invitation(of: .visitor($0), to: event) != nil }
  }

  func canSee(_ event: Int, _ person: Int) -> Bool {
    events[event].hosts.contains(person) || invitees(of: event).contains(person)
  }

  /// The statuses for a user who may not change an event, or nil if the user may.
  func refusal(of event: Int, to person: Int) -> Set<Int>? {
    let isClosed = events[event].isClosed
    if !canSee(event, person) { return [404] }
    if !events[event].hosts.contains(person) { return isClosed ? [403, 409] : [403] }
    return isClosed ? [409] : nil
  }

  /// The same for what hosts may do even at an event that no longer changes.
  func refusal(ofRoleAt event: Int, to person: Int) -> Set<Int>? {
    if !canSee(event, person) { return [404] }
    return events[event].hosts.contains(person) ? nil : [403]
  }

  /// As in the guest list.
  func id(of guest: Guest) -> String {
    switch guest {
    case .user(let user): people[user].id
    case .visitor(let visitor): visitors[visitor].id
    }
  }

  func name(of guest: Guest) -> String {
    switch guest {
    case .user(let user): people[user].displayName
    case .visitor(let visitor): visitors[visitor].name
    }
  }
}
