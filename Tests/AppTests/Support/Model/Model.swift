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
    /// Whether the account has verified its address.
    var isVerified = false
    var isGone = false
  }

  struct Request {
    let id: String
    let sender: Int
    let receiver: Int
    /// `ended` if a block or a deleted account closed the request. The contract does not define its status then.
    var status = "pending"
    /// Whether it waits apart from the receiver's other requests.
    var isFiltered = false
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
    var url: String?
    var capacity: Int?
    var answerBy: String?
    var maxPlusOnes = 0

    /// The fields that an edit may change.
    var words: [(field: String, value: String?)] {
      [
        ("title", title), ("note", note), ("startTime", start), ("endTime", end), ("location", location), ("url", url),
        ("capacity", capacity.map { String($0) }), ("answerBy", answerBy), ("maxPlusOnes", String(maxPlusOnes)),
      ]
    }

    /// Whether the event is over. Tests use events that were over long ago, and events that are years ahead.
    var isOver: Bool { start < "2025" }
    /// Whether only hosts set answers. Deadlines passed long ago, or are years ahead.
    var isPastAnswers: Bool { answerBy.map { $0 < "2025" } ?? false }
  }

  struct Event {
    let id: String
    /// The creator.
    var host: Int
    /// By when they were added.
    var coHosts: [Int] = []
    /// The former co-hosts whose role others have ended. No link admits them.
    var removed: Set<Int> = []
    var plan: Plan
    var status = "scheduled"
    var version = 1
    var isArchived = false

    /// The creator first.
    var hosts: [Int] { [host] + coHosts }

    /// Whether the event can no longer change.
    var isClosed: Bool { status == "cancelled" || isArchived }
  }

  struct Invitation {
    let event: Int
    /// A person, or from ``firstVisitor`` on a visitor.
    let guest: Int
    var status = "invited"
    var plusOnes = 0
    /// The answer that a pending visitor wants.
    var wanted: String?
    /// The time of the last answer, on the model's clock; 0 for none.
    var answered = 0
    var isReminded = false

    var places: Int { 1 + plusOnes }
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

  /// The number of the first visitor among guests.
  static let firstVisitor = 1_000_000

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

    /// The guest whom it names by the id in the guest list.
    var guest: String? { others.first { $0.hasPrefix("guestId=") } }

    /// The notice of an edit keeps that the note, the place or the web address has changed, but not from what to what.
    mutating func forgetNoteAndPlace() {
      others = others.map { $0.replacing(/(note|location|url) from .*? to [^,]*/) { "\($0.output.1) from - to -" } }
    }
  }

  /// A type of notification that a user has turned off for devices.
  struct Muting: Equatable {
    let by: Int
    let type: String
  }

  static let types = [
    "friend-request", "friend-accepted", "event-invited", "event-updated", "event-cancelled", "invitation-withdrawn",
    "invitation-answered", "waitlist-promoted", "event-reminder", "host-offered",
    "host-added", "answer-merged", "answer-proposed",
    "answer-set", "answer-reminder", "guest-answered", "approval-requested",
  ]

  private(set) var people: [Person] = []
  private(set) var requests: [Request] = []
  private(set) var friendships: [Friendship] = []
  private(set) var blocks: [Block] = []
  var events: [Event] = []
  var invitations: [Invitation] = []
  var links: [Link] = []
  /// The links that a host has revoked, those of deleted accounts, and those of co-hosts whose role has ended.
  var revoked: Set<Int> = []
  var visitors: [Visitor] = []
  var queue: [Notice] = []
  /// The inboxes of all users, oldest first. Notices move here from the queue when they are delivered.
  var inbox: [Notice] = []
  private(set) var mutings: [Muting] = []
  var clock = 0

  static let done: Set<Int> = [200, 201, 204]
  static let doneOrMissing: Set<Int> = [200, 201, 204, 404]

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

  /// The guests with an account.
  func guests(of event: Int) -> [Int] {
    allGuests(of: event).filter { $0 < Self.firstVisitor }
  }

  func allGuests(of event: Int) -> [Int] {
    invitations.filter { $0.event == event }.map(\.guest)
  }

  func canSee(_ event: Int, _ person: Int) -> Bool {
    events[event].hosts.contains(person) || guests(of: event).contains(person)
  }

  /// Open offers to host an event.
  var offers: [Offer] = []

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
    handOver(by: person)
    for event in events.indices where events[event].host == person && !events[event].isClosed {
      if events[event].plan.isOver { continue }
      events[event].status = "cancelled"
      events[event].version += 1
      notifyGuests(of: event, "event-cancelled", by: person)
      forgetProposals(at: event)
    }
    for event in events.indices where events[event].host == person {
      (events[event].plan.note, events[event].plan.location, events[event].plan.url) = (nil, nil, nil)
      for index in queue.indices where queue[index].event == event { queue[index].forgetNoteAndPlace() }
      for index in inbox.indices where inbox[index].event == event { inbox[index].forgetNoteAndPlace() }
    }
    people[person].isGone = true
    friendships.removeAll { $0.isOf(person) }
    blocks.removeAll { $0.by == person || $0.of == person }
    endRequests { $0.sender == person || $0.receiver == person }
    for index in links.indices where links[index].by == person { revoked.insert(index) }
    let visits = visitors.indices.filter { visitors[$0].account == person && invitation(ofVisitor: $0) != nil }
    let visited = visits.compactMap { invitation(ofVisitor: $0).map { invitations[$0].event } }
    invitations.removeAll { visits.map { $0 + Self.firstVisitor }.contains($0.guest) }
    for event in events.indices where guests(of: event).contains(person) { remove(person, from: event, by: person) }
    for event in events.indices where visited.contains(event) { promote(to: event, by: person) }
    for visitor in visits { forgetNotices(about: visitor + Self.firstVisitor) }
  }

  mutating func verifyEmail(of person: Int) {
    people[person].isVerified = true
    for index in requests.indices where requests[index].sender == person && requests[index].isFiltered {
      requests[index].isFiltered = false
      if requests[index].status == "pending" { notifyOfRequest(index) }
    }
  }

  private mutating func notifyOfRequest(_ request: Int) {
    let request = requests[request]
    notify(
      notice("friend-request", to: request.receiver, about: request.sender, others: ["requestId=\(request.id)"]),
      by: request.sender)
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
        notify(notice("friend-accepted", to: sender, about: receiver), by: receiver)
        notify(notice("friend-accepted", to: receiver, about: sender), by: sender)
        return [200]
      }
    }
    let isFiltered = !people[sender].isVerified
    requests.append(Request(id: id, sender: sender, receiver: receiver, isFiltered: isFiltered))
    if !isFiltered { notifyOfRequest(requests.count - 1) }
    return [201]
  }

  mutating func accept(_ request: Int, by person: Int) -> Set<Int> {
    if let answer = self.answer(to: request, as: "accepted", by: person, of: requests[request].receiver) {
      return answer
    }
    befriend(request)
    let sender = requests[request].sender
    notify(notice("friend-accepted", to: sender, about: person), by: person)
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
    let named = "requestId=\(requests[request].id)"
    queue.removeAll { $0.others == [named] }
    inbox.removeAll { $0.others == [named] }
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
    // Offers to guests stay.
    let (events, guests) = (events, events.indices.map { self.guests(of: $0) })
    for (one, two) in [(person, other), (other, person)] {
      endOffers { $0.user == one && events[$0.event].host == two && !guests[$0.event].contains(one) }
    }
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
    let events = events
    let pairs = [(person, other), (other, person)]
    for (one, two) in pairs {
      // A host of an event stays one if the other is also a co-host.
      queue.removeAll { notice in
        guard notice.recipient == one else { return false }
        let event = notice.event.map { events[$0] }
        return notice.user == two
          || event.map { $0.hosts.contains(two) && !($0.hosts.contains(one) && $0.host != two) } ?? false
      }
    }
    for event in events.indices where !events[event].isArchived {
      for (one, two) in pairs where events[event].host == two && events[event].coHosts.contains(one) {
        endRole(of: one, at: event)
      }
      for (one, two) in pairs where events[event].hosts.contains(two) {
        for visitor in visitors.indices where visitors[visitor].isProposed && visitors[visitor].account == one {
          guard let index = invitation(ofVisitor: visitor), invitations[index].event == event else { continue }
          forgetNotices(about: Self.firstVisitor + visitor)
          remove(Self.firstVisitor + visitor, from: event, by: nil)
        }
      }
      for (one, two) in pairs where events[event].hosts.contains(two) && guests(of: event).contains(one) {
        remove(one, from: event, by: nil)
      }
      endOffers(to: [person, other], of: event)
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
    add(guests, to: events.count - 1, by: host)
    return [201]
  }

  /// - Parameter version: the version in `If-Match`.
  mutating func edit(_ event: Int, by person: Int, to new: Plan, ifVersion version: Int?) -> Set<Int> {
    if let refusal = self.refusal(of: event, to: person) { return refusal }
    let old = events[event].plan
    let (before, after) = (old.words, new.words)
    let changes = after.indices.filter { after[$0].value != before[$0].value }.map { index in
      "\(after[index].field) from \(before[index].value ?? "-") to \(after[index].value ?? "-")"
    }
    if changes.isEmpty { return [200] }
    if let version, version != events[event].version { return [412] }
    if let end = new.end, end <= new.start { return [422] }
    clock += 1
    events[event].plan = new
    events[event].version += 1
    notifyGuests(of: event, "event-updated", ["changes=" + changes.sorted().joined(separator: ", ")], by: person)
    promote(to: event, by: person)
    return [200]
  }

  mutating func cancelEvent(_ event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    // Only the creator cancels.
    if events[event].host != person { return events[event].isClosed ? [403, 409] : [403] }
    if events[event].isClosed { return events[event].status == "cancelled" ? Self.done.union([409]) : [409] }
    events[event].status = "cancelled"
    events[event].version += 1
    notifyGuests(of: event, "event-cancelled", by: person)
    forgetProposals(at: event)
    return Self.done
  }

  /// Archives all events that are over.
  mutating func archive() {
    for event in events.indices where events[event].plan.isOver && !events[event].isArchived {
      events[event].isArchived = true
      for visitor in visitors.indices where visitors[visitor].isProposed {
        guard let index = invitation(ofVisitor: visitor), invitations[index].event == event else { continue }
        invitations.remove(at: index)
        forgetNotices(about: Self.firstVisitor + visitor)
      }
      forgetProposals(at: event)
    }
  }

  mutating func invite(_ guests: [Int], to event: Int, by person: Int) -> Set<Int> {
    let areAllFriends = guests.allSatisfy { areFriends(person, $0) }
    if let refusal = self.refusal(of: event, to: person) { return areAllFriends ? refusal : refusal.union([422]) }
    guard areAllFriends, !guests.contains(where: { isHidden($0, fromHostsOf: event) }) else { return [422] }
    clock += 1
    events[event].removed.subtract(guests)
    add(guests, to: event, by: person)
    return [200, 201]
  }

  mutating func withdraw(_ guest: Int, from event: Int, by person: Int) -> Set<Int> {
    let status = invitation(of: guest, to: event).map { invitations[$0].status }
    if let refusal = self.refusal(of: event, to: person) {
      return status == nil ? refusal.union(Self.doneOrMissing) : refusal
    }
    guard let status else { return Self.doneOrMissing }
    clock += 1
    let visits = visitors.indices.filter { visitor in
      visitors[visitor].isProposed && visitors[visitor].account == guest
        && invitation(ofVisitor: visitor).map { invitations[$0].event == event } ?? false
    }.map { Self.firstVisitor + $0 }
    for visit in visits { forgetNotices(about: visit) }
    invitations.removeAll { visits.contains($0.guest) }
    remove(guest, from: event, by: person)
    if !visits.isEmpty { promote(to: event, by: person) }
    forgetNotices(to: guest, about: event)
    offers.removeAll { $0.event == event && $0.user == guest }
    if guest >= Self.firstVisitor { forgetNotices(about: guest) }
    // A guest who has declined is not notified.
    if status != "declined", guest < Self.firstVisitor {
      notify(notice("invitation-withdrawn", to: guest, of: event), by: person)
    }
    return Self.done
  }

  /// - Parameter plusOnes: the number in the request, if there is one.
  mutating func answer(_ status: String, plusOnes: Int? = nil, to event: Int, by person: Int) -> Set<Int> {
    guard let index = invitation(of: person, to: event) else {
      return events[event].hosts.contains(person) ? [409] : [404]
    }
    if events[event].isClosed { return [409] }
    let old = invitations[index]
    if old.status == "pending" { return [409] }
    var new: Invitation
    switch decide(status, plusOnes: plusOnes, atMost: events[event].plan.maxPlusOnes, from: old) {
    case .refused(let code): return [code]
    case .becomes(let group): new = group
    }
    if new.status == old.status, new.plusOnes == old.plusOnes { return [200] }
    if events[event].plan.isPastAnswers { return [409] }
    replace(index, by: &new)
    notifyHosts(of: new, by: person)
    promote(to: event, by: person)
    return [200]
  }

  mutating func replace(_ index: Int, by new: inout Invitation) {
    clock += 1
    // A group that waits keeps its place in the line.
    if invitations[index].status != "waitlisted" || new.status != "waitlisted" { new.answered = clock }
    invitations[index] = new
  }

  /// - Parameter actor: the invitee, or the host who has set the answer.
  mutating func notifyHosts(of answer: Invitation, by actor: Int) {
    let others = ["status=\(answer.status)"] + Self.plusOnes(answer.status == "declined" ? 0 : answer.plusOnes)
    for host in events[answer.event].hosts {
      notify(
        notice("invitation-answered", to: host, of: answer.event, about: answer.guest, others: others), by: actor)
    }
  }

  enum Decision {
    case refused(Int)
    case becomes(Invitation)
  }

  /// A guest's group after an answer.
  ///
  /// - Parameter most: the number of people whom the guest may bring, besides those of an earlier answer.
  func decide(_ status: String, plusOnes: Int?, atMost most: Int, from old: Invitation) -> Decision {
    let isBack = old.status == "declined" && status != "declined"
    let most = isBack ? most : max(most, old.plusOnes)
    if let plusOnes, plusOnes > most { return .refused(422) }
    var new = old
    new.status = status
    new.plusOnes = plusOnes ?? min(old.plusOnes, most)
    guard status == "going" else { return .becomes(new) }
    let capacity = events[old.event].plan.capacity
    let canEverHold = capacity.map { new.places <= $0 } ?? true
    // Groups that are larger than the whole event are not in the way of others.
    let isAwaited = invitations.contains { other in
      other.event == old.event && other.status == "waitlisted" && capacity.map { other.places <= $0 } ?? true
    }
    let more = new.places - (old.status == "going" ? old.places : 0)
    let hasRoom = !isAwaited && (places(of: old.event).map { $0 >= more } ?? true)
    switch old.status {
    case "going": if more > 0, !hasRoom { return .refused(409) }
    case "waitlisted":
      if new.places > old.places, !canEverHold { return .refused(409) }
      new.status = "waitlisted"
    default:
      if !canEverHold { return .refused(409) }
      if !hasRoom { new.status = "waitlisted" }
    }
    return .becomes(new)
  }

  /// The statuses for a user who may not change an event, or nil if the user may.
  func refusal(of event: Int, to person: Int) -> Set<Int>? {
    if !canSee(event, person) { return [404] }
    if !events[event].hosts.contains(person) { return events[event].isClosed ? [403, 409] : [403] }
    return events[event].isClosed ? [409] : nil
  }

  mutating func add(_ guests: [Int], to event: Int, by host: Int) {
    for guest in guests where invitation(of: guest, to: event) == nil && !events[event].hosts.contains(guest) {
      invitations.append(Invitation(event: event, guest: guest))
      notify(notice("event-invited", to: guest, of: event, about: host), by: host)
    }
  }

  /// - Parameter actor: nil for a block, which hosts must not notice.
  mutating func remove(_ guest: Int, from event: Int, by actor: Int?) {
    invitations.removeAll { $0.event == event && $0.guest == guest }
    promote(to: event, by: actor)
  }

  /// The number of free places, or nil without a limit.
  func places(of event: Int) -> Int? {
    events[event].plan.capacity.map { capacity in
      capacity - invitations.filter { $0.event == event && $0.status == "going" }.map(\.places).reduce(0, +)
    }
  }

  /// - Parameter actor: the user whose change this is; nil for a block.
  mutating func promote(to event: Int, by actor: Int?) {
    if events[event].isClosed || events[event].plan.isOver { return }
    var promoted: [Int] = []
    while true {
      var first: Int?
      for index in invitations.indices where invitations[index].event == event {
        guard invitations[index].status == "waitlisted" else { continue }
        if let capacity = events[event].plan.capacity, invitations[index].places > capacity { continue }
        if first.map({ invitations[index].answered < invitations[$0].answered }) ?? true { first = index }
      }
      guard let first, places(of: event).map({ $0 >= invitations[first].places }) ?? true else { break }
      invitations[first].status = "going"
      promoted.append(invitations[first].guest)
    }
    // Notices are in the order of user ids, not in the order of the waiting list.
    for guest in promoted.sorted(by: { id(of: $0) < id(of: $1) }) {
      if guest >= Self.firstVisitor {
        if let actor { notifyOfPromotion(of: guest, at: event, by: actor) }
        continue
      }
      let others = Self.plusOnes(invitation(of: guest, to: event).map { invitations[$0].plusOnes } ?? 0)
      var own = notice("waitlist-promoted", to: guest, of: event, about: guest, others: others)
      own.actor = nil
      if guest != actor { queue.append(own) }
      guard let actor else { continue }
      for host in events[event].hosts {
        notify(notice("waitlist-promoted", to: host, of: event, about: guest, others: others), by: actor)
      }
    }
  }

  static func plusOnes(_ number: Int) -> [String] { number > 0 ? ["plusOnes=\(number)"] : [] }

  // MARK: Notifications

  /// Notifies the hosts and the guests who have not declined.
  private mutating func notifyGuests(of event: Int, _ type: String, _ others: [String] = [], by actor: Int) {
    for host in events[event].hosts { notify(notice(type, to: host, of: event, others: others), by: actor) }
    for invitation in invitations where invitation.event == event && invitation.status != "declined" {
      guard invitation.guest < Self.firstVisitor else { continue }
      notify(notice(type, to: invitation.guest, of: event, others: others), by: actor)
    }
  }

  func notice(
    _ type: String, to recipient: Int, of event: Int? = nil, about user: Int? = nil, others: [String] = []
  ) -> Notice {
    Notice(
      type: type, recipient: recipient, event: event, user: user, title: event.map { events[$0].plan.title },
      actor: user.map { people[$0].displayName }, others: others)
  }

  /// The actor is never a recipient.
  mutating func notify(_ notice: Notice, by actor: Int) {
    if !people[notice.recipient].isGone && notice.recipient != actor { queue.append(notice) }
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

  /// Delivers all queued notices to the inboxes. Two users with a block between them get none about each other: they
  /// may be a guest and a co-host who was added later. A guest's answer replaces an earlier answer that is unread.
  mutating func deliver() {
    for notice in queue where !people[notice.recipient].isGone {
      if let user = notice.user, isHidden(user, from: notice.recipient) { continue }
      if ["invitation-answered", "guest-answered", "approval-requested"].contains(notice.type) {
        inbox.removeAll {
          $0.type == notice.type && $0.recipient == notice.recipient && $0.event == notice.event
            && $0.user == notice.user && $0.guest == notice.guest && !$0.isRead
        }
      }
      inbox.append(notice)
    }
    queue = []
  }
}
