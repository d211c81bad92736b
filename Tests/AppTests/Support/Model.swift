/// A model of the contract: users, their plans, and their notifications. It searches plain arrays and derives
/// everything that can be counted. It shares nothing with the service's implementation, and need not be fast.
///
/// Users, requests and events are known by their indices in the arrays. Each verb returns the statuses that the
/// contract allows: several if the contract does not say whether a verb without effect is refused.
struct Model {
  struct Person {
    let id: String
    let email: String
    var username: String
    var displayName: String
    var bio: String?
    var isGone = false
  }

  struct Request {
    let id: String
    let sender: Int
    let receiver: Int
    /// `ended` if a block or a deleted account closed the request. The contract does not define its status then.
    var status = "pending"
  }

  struct Friendship {
    let one: Int
    let other: Int

    func isOf(_ person: Int) -> Bool { one == person || other == person }

    func isBetween(_ person: Int, _ friend: Int) -> Bool { isOf(person) && isOf(friend) && person != friend }
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
    var capacity: Int?
    var maxPlusOnes = 0

    /// The fields that an edit may change.
    var words: [(field: String, value: String?)] {
      [
        ("title", title), ("note", note), ("startTime", start), ("endTime", end), ("location", location),
        ("capacity", capacity.map { String($0) }), ("maxPlusOnes", String(maxPlusOnes)),
      ]
    }

    /// Whether the event is over. Tests use events that were over long ago, and events that are years ahead.
    var isOver: Bool { start < "2025" }
  }

  struct Event {
    let id: String
    let host: Int
    var plan: Plan
    var status = "scheduled"
    var version = 1
    var isArchived = false

    /// Whether the event can no longer change.
    var isClosed: Bool { status == "cancelled" || isArchived }
  }

  struct Invitation {
    let event: Int
    let guest: Int
    var status = "invited"
    var plusOnes = 0
    /// The time of the last answer, on the model's clock.
    var answered = 0

    var places: Int { 1 + plusOnes }
  }

  struct Notice {
    let type: String
    let recipient: Int
    var event: Int?
    var user: Int?
    /// The event's title and the user's name at that time.
    var title: String?
    var actor: String?
    var others: [String] = []
    var isRead = false

    /// The notice of an edit keeps that the note or the place has changed, but not from what to what.
    mutating func forgetNoteAndPlace() {
      others = others.map { $0.replacing(/(note|location) from .*? to [^,]*/) { "\($0.output.1) from - to -" } }
    }
  }

  /// A type of notification that a user has turned off for devices.
  struct Muting: Equatable {
    let by: Int
    let type: String
  }

  static let types = [
    "friend-request", "friend-accepted", "event-invited", "event-updated", "event-cancelled", "invitation-withdrawn",
    "invitation-answered", "waitlist-promoted", "event-reminder", "host-added",
    "answer-set", "answer-reminder",
  ]

  private(set) var people: [Person] = []
  private(set) var requests: [Request] = []
  private(set) var friendships: [Friendship] = []
  private(set) var blocks: [Block] = []
  private(set) var events: [Event] = []
  private(set) var invitations: [Invitation] = []
  private(set) var queue: [Notice] = []
  /// The inboxes of all users, oldest first. Notices move here from the queue when they are delivered.
  private(set) var inbox: [Notice] = []
  private(set) var mutings: [Muting] = []
  private var clock = 0

  private static let done: Set<Int> = [200, 201, 204]
  private static let doneOrMissing: Set<Int> = [200, 201, 204, 404]

  var present: [Int] { people.indices.filter { !people[$0].isGone } }

  func areFriends(_ one: Int, _ other: Int) -> Bool {
    friendships.contains { $0.isBetween(one, other) }
  }

  func isHidden(_ one: Int, from other: Int) -> Bool {
    blocks.contains(Block(by: one, of: other)) || blocks.contains(Block(by: other, of: one))
  }

  func friends(of person: Int) -> [Int] {
    people.indices.filter { areFriends(person, $0) }
  }

  func invitation(of guest: Int, to event: Int) -> Int? {
    invitations.firstIndex { $0.event == event && $0.guest == guest }
  }

  func guests(of event: Int) -> [Int] {
    invitations.filter { $0.event == event }.map(\.guest)
  }

  func canSee(_ event: Int, _ person: Int) -> Bool {
    events[event].host == person || guests(of: event).contains(person)
  }

  // MARK: People

  mutating func register(_ person: Person) {
    people.append(person)
  }

  mutating func edit(_ person: Int, username: String?, displayName: String?, bio: String??) {
    if let username { people[person].username = username }
    if let displayName { people[person].displayName = displayName }
    if let bio { people[person].bio = bio }
  }

  mutating func deleteAccount(of person: Int) {
    clock += 1
    queue.removeAll { $0.recipient == person || $0.user == person }
    inbox.removeAll { $0.recipient == person || $0.user == person }
    mutings.removeAll { $0.by == person }
    for event in events.indices where events[event].host == person && !events[event].isClosed {
      if events[event].plan.isOver { continue }
      events[event].status = "cancelled"
      events[event].version += 1
      tellGuests(of: event, "event-cancelled")
    }
    for event in events.indices where events[event].host == person {
      (events[event].plan.note, events[event].plan.location) = (nil, nil)
      for index in queue.indices where queue[index].event == event { queue[index].forgetNoteAndPlace() }
      for index in inbox.indices where inbox[index].event == event { inbox[index].forgetNoteAndPlace() }
    }
    people[person].isGone = true
    friendships.removeAll { $0.isOf(person) }
    blocks.removeAll { $0.by == person || $0.of == person }
    endRequests { $0.sender == person || $0.receiver == person }
    for event in events.indices where guests(of: event).contains(person) { remove(person, from: event, by: person) }
  }

  private mutating func endRequests(_ isMeant: (Request) -> Bool) {
    for index in requests.indices where requests[index].status == "pending" && isMeant(requests[index]) {
      requests[index].status = "ended"
    }
  }

  // MARK: Friends

  /// - Parameter id: the id of the request, if one is created.
  mutating func send(_ id: String, from sender: Int, to receiver: Int) -> Set<Int> {
    if sender == receiver { return [422] }
    if people[receiver].isGone || isHidden(receiver, from: sender) { return [404] }
    if areFriends(sender, receiver) { return [409] }
    for index in requests.indices where requests[index].status == "pending" {
      let request = requests[index]
      if request.sender == sender && request.receiver == receiver { return [200] }
      if request.sender == receiver && request.receiver == sender {
        befriend(index)
        tell(notice("friend-accepted", to: sender, about: receiver), by: receiver)
        tell(notice("friend-accepted", to: receiver, about: sender), by: sender)
        return [200]
      }
    }
    requests.append(Request(id: id, sender: sender, receiver: receiver))
    tell(notice("friend-request", to: receiver, about: sender, others: ["requestId=\(id)"]), by: sender)
    return [201]
  }

  mutating func accept(_ request: Int, by person: Int) -> Set<Int> {
    if let answer = self.answer(to: request, as: "accepted", by: person, of: requests[request].receiver) {
      return answer
    }
    befriend(request)
    let sender = requests[request].sender
    tell(notice("friend-accepted", to: sender, about: person), by: person)
    return [200]
  }

  mutating func decline(_ request: Int, by person: Int) -> Set<Int> {
    if let answer = self.answer(to: request, as: "declined", by: person, of: requests[request].receiver) {
      return answer
    }
    requests[request].status = "declined"
    return [200]
  }

  mutating func cancel(_ request: Int, by person: Int) -> Set<Int> {
    if let answer = self.answer(to: request, as: "cancelled", by: person, of: requests[request].sender) {
      return answer
    }
    requests[request].status = "cancelled"
    // The notice of a cancelled request is removed, whether it is delivered or not.
    let told = "requestId=\(requests[request].id)"
    queue.removeAll { $0.others == [told] }
    inbox.removeAll { $0.others == [told] }
    return Self.done
  }

  /// The statuses of a verb that has no effect on a request, or nil if it has one.
  private func answer(to request: Int, as status: String, by person: Int, of rightful: Int) -> Set<Int>? {
    let request = requests[request]
    if person != rightful || people[request.sender].isGone || people[request.receiver].isGone { return [404] }
    if request.status == "ended" || isHidden(request.sender, from: request.receiver) { return [200, 204, 404, 409] }
    if request.status == status { return Self.done }
    return request.status == "pending" ? nil : [409]
  }

  private mutating func befriend(_ request: Int) {
    requests[request].status = "accepted"
    friendships.append(Friendship(one: requests[request].sender, other: requests[request].receiver))
  }

  mutating func unfriend(_ other: Int, by person: Int) -> Set<Int> {
    guard areFriends(person, other) else { return Self.doneOrMissing }
    friendships.removeAll { $0.isBetween(person, other) }
    return Self.done
  }

  /// - Parameter wasDone: whether the service created the block. The contract leaves that open if the other user has
  ///   blocked this person before: to this person, the other user does not exist.
  mutating func block(_ other: Int, by person: Int, wasDone: Bool) -> Set<Int> {
    if people[other].isGone { return Self.done }
    if blocks.contains(Block(by: person, of: other)) { return Self.done }
    if isHidden(other, from: person) {
      if wasDone { blocks.append(Block(by: person, of: other)) }
      return Self.doneOrMissing
    }
    clock += 1
    blocks.append(Block(by: person, of: other))
    friendships.removeAll { $0.isBetween(person, other) }
    endRequests { $0.sender == person && $0.receiver == other || $0.sender == other && $0.receiver == person }
    let hosts = events.map(\.host)
    for (one, two) in [(person, other), (other, person)] {
      queue.removeAll { notice in
        notice.recipient == one && (notice.user == two || notice.event.map { hosts[$0] == two } == true)
      }
    }
    for event in events.indices where !events[event].isArchived {
      if events[event].host == person && guests(of: event).contains(other) { remove(other, from: event, by: person) }
      if events[event].host == other && guests(of: event).contains(person) { remove(person, from: event, by: other) }
    }
    return Self.done
  }

  mutating func unblock(_ other: Int, by person: Int) -> Set<Int> {
    guard blocks.contains(Block(by: person, of: other)) else { return Self.doneOrMissing }
    blocks.removeAll { $0 == Block(by: person, of: other) }
    return Self.done
  }

  // MARK: Events

  /// - Parameter id: the id of the event, if one is created.
  mutating func create(_ id: String, _ plan: Plan, by host: Int, inviting guests: [Int]) -> Set<Int> {
    if guests.contains(where: { !areFriends(host, $0) }) { return [422] }
    clock += 1
    events.append(Event(id: id, host: host, plan: plan))
    add(guests, to: events.count - 1)
    return [201]
  }

  /// - Parameter version: the version in `If-Match`.
  mutating func edit(_ event: Int, by person: Int, to new: Plan, ifVersion version: Int?) -> Set<Int> {
    if let refusal = self.refusal(of: event, to: person) { return refusal }
    if let version, version != events[event].version { return [412] }
    if let end = new.end, end <= new.start { return [422] }
    let old = events[event].plan
    let (before, after) = (old.words, new.words)
    let changes = after.indices.filter { after[$0].value != before[$0].value }.map { index in
      "\(after[index].field) from \(before[index].value ?? "-") to \(after[index].value ?? "-")"
    }
    if changes.isEmpty { return [200] }
    clock += 1
    events[event].plan = new
    events[event].version += 1
    tellGuests(of: event, "event-updated", ["changes=" + changes.sorted().joined(separator: ", ")])
    promote(to: event, by: person)
    return [200]
  }

  mutating func cancelEvent(_ event: Int, by person: Int) -> Set<Int> {
    if let refusal = self.refusal(of: event, to: person) {
      return events[event].host == person && events[event].status == "cancelled" ? refusal.union(Self.done) : refusal
    }
    events[event].status = "cancelled"
    events[event].version += 1
    tellGuests(of: event, "event-cancelled")
    return Self.done
  }

  /// Archives all events that are over.
  mutating func archive() {
    for event in events.indices where events[event].plan.isOver { events[event].isArchived = true }
  }

  mutating func invite(_ guests: [Int], to event: Int, by person: Int) -> Set<Int> {
    let areAllFriends = guests.allSatisfy { areFriends(person, $0) }
    if let refusal = self.refusal(of: event, to: person) { return areAllFriends ? refusal : refusal.union([422]) }
    guard areAllFriends else { return [422] }
    clock += 1
    add(guests, to: event)
    return [200, 201]
  }

  mutating func withdraw(_ guest: Int, from event: Int, by person: Int) -> Set<Int> {
    let status = invitation(of: guest, to: event).map { invitations[$0].status }
    if let refusal = self.refusal(of: event, to: person) {
      return status == nil ? refusal.union(Self.doneOrMissing) : refusal
    }
    guard let status else { return Self.doneOrMissing }
    clock += 1
    remove(guest, from: event, by: person)
    queue.removeAll { $0.recipient == guest && $0.event == event }
    inbox.removeAll { $0.recipient == guest && $0.event == event }
    // A guest who has declined is not notified.
    if status != "declined" { tell(notice("invitation-withdrawn", to: guest, of: event), by: person) }
    return Self.done
  }

  /// - Parameter plusOnes: the number in the request, if there is one.
  mutating func answer(_ status: String, plusOnes: Int? = nil, to event: Int, by person: Int) -> Set<Int> {
    guard let index = invitation(of: person, to: event) else { return events[event].host == person ? [409] : [404] }
    if events[event].isClosed { return [409] }
    let most = events[event].plan.maxPlusOnes
    if let plusOnes, plusOnes > most { return [422] }
    let old = invitations[index]
    var new = old
    new.status = status
    if old.status == "declined", status != "declined" { new.plusOnes = min(old.plusOnes, most) }
    if let plusOnes { new.plusOnes = plusOnes }
    if status == "going" {
      let isAwaited = invitations.contains { $0.event == event && $0.status == "waitlisted" }
      let more = new.places - (old.status == "going" ? old.places : 0)
      let hasRoom = !isAwaited && (places(of: event).map { $0 >= more } ?? true)
      if old.status == "going" {
        if more > 0, !hasRoom { return [409] }
      } else if !hasRoom {
        new.status = "waitlisted"
      }
    }
    if new.status == old.status, new.plusOnes == old.plusOnes { return [200] }
    clock += 1
    // A group that waits keeps its place in the line.
    if old.status != "waitlisted" || new.status != "waitlisted" { new.answered = clock }
    invitations[index] = new
    let host = events[event].host
    let others = ["status=\(new.status)"] + Self.plusOnes(new.status == "declined" ? 0 : new.plusOnes)
    tell(notice("invitation-answered", to: host, of: event, about: person, others: others), by: person)
    promote(to: event, by: person)
    return [200]
  }

  /// The statuses for a user who may not change an event, or nil if the user may.
  private func refusal(of event: Int, to person: Int) -> Set<Int>? {
    if !canSee(event, person) { return [404] }
    if events[event].host != person { return events[event].isClosed ? [403, 409] : [403] }
    return events[event].isClosed ? [409] : nil
  }

  private mutating func add(_ guests: [Int], to event: Int) {
    let host = events[event].host
    for guest in guests where invitation(of: guest, to: event) == nil {
      invitations.append(Invitation(event: event, guest: guest))
      tell(notice("event-invited", to: guest, of: event, about: host), by: host)
    }
  }

  private mutating func remove(_ guest: Int, from event: Int, by actor: Int) {
    invitations.removeAll { $0.event == event && $0.guest == guest }
    promote(to: event, by: actor)
  }

  /// The number of free places, or nil without a limit.
  private func places(of event: Int) -> Int? {
    events[event].plan.capacity.map { capacity in
      capacity - invitations.filter { $0.event == event && $0.status == "going" }.map(\.places).reduce(0, +)
    }
  }

  /// - Parameter actor: the user whose change this is.
  private mutating func promote(to event: Int, by actor: Int) {
    if events[event].isClosed || events[event].plan.isOver { return }
    var promoted: [Int] = []
    while true {
      var first: Int?
      for index in invitations.indices where invitations[index].event == event {
        guard invitations[index].status == "waitlisted" else { continue }
        if first.map({ invitations[index].answered < invitations[$0].answered }) ?? true { first = index }
      }
      guard let first, places(of: event).map({ $0 >= invitations[first].places }) ?? true else { break }
      invitations[first].status = "going"
      invitations[first].answered = clock
      promoted.append(invitations[first].guest)
    }
    // Notices are in the order of user ids, not in the order of the waiting list.
    for guest in promoted.sorted(by: { people[$0].id < people[$1].id }) {
      let others = Self.plusOnes(invitation(of: guest, to: event).map { invitations[$0].plusOnes } ?? 0)
      var own = notice("waitlist-promoted", to: guest, of: event, about: guest, others: others)
      own.actor = nil
      if guest != actor { queue.append(own) }
      let host = events[event].host
      if host != actor {
        tell(notice("waitlist-promoted", to: host, of: event, about: guest, others: others), by: guest)
      }
    }
  }

  private static func plusOnes(_ number: Int) -> [String] { number > 0 ? ["plusOnes=\(number)"] : [] }

  // MARK: Notifications

  private mutating func tellGuests(of event: Int, _ type: String, _ others: [String] = []) {
    for invitation in invitations where invitation.event == event && invitation.status != "declined" {
      tell(notice(type, to: invitation.guest, of: event, others: others), by: events[event].host)
    }
  }

  private func notice(
    _ type: String, to recipient: Int, of event: Int? = nil, about user: Int? = nil, others: [String] = []
  ) -> Notice {
    Notice(
      type: type, recipient: recipient, event: event, user: user, title: event.map { events[$0].plan.title },
      actor: user.map { people[$0].displayName }, others: others)
  }

  /// Two users with a block between them get no notices about each other.
  private mutating func tell(_ notice: Notice, by actor: Int) {
    if !people[notice.recipient].isGone && !isHidden(notice.recipient, from: actor) { queue.append(notice) }
  }

  /// The indices in the inbox of the notifications that a user sees, newest first.
  func shown(to person: Int) -> [Int] {
    inbox.indices.reversed().filter { place in
      let notice = inbox[place]
      return notice.recipient == person && notice.user.map { !isHidden($0, from: person) } ?? true
    }
  }

  /// - Parameter rows: positions in the list that the user sees, or nil for all of it.
  /// - Returns: the number of unread notifications afterwards.
  mutating func markRead(_ rows: [Int]?, by person: Int) -> Int {
    let shown = shown(to: person)
    for row in rows ?? Array(shown.indices) { inbox[shown[row]].isRead = true }
    return shown.count { !inbox[$0].isRead }
  }

  mutating func choose(_ choices: [(type: String, isOn: Bool)], by person: Int) {
    for choice in choices {
      let muting = Muting(by: person, type: choice.type)
      mutings.removeAll { $0 == muting }
      if !choice.isOn { mutings.append(muting) }
    }
  }

  /// Delivers all queued notices to the inboxes. A guest's answer replaces an earlier answer that is unread.
  mutating func deliver() {
    for notice in queue where !people[notice.recipient].isGone {
      if notice.type == "invitation-answered" {
        inbox.removeAll {
          $0.type == notice.type && $0.recipient == notice.recipient && $0.event == notice.event
            && $0.user == notice.user && !$0.isRead
        }
      }
      inbox.append(notice)
    }
    queue = []
  }
}
