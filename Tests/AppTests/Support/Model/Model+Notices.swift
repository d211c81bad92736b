/// Notices in the queue and in inboxes.
extension Model {
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
    mutating func forgetDetails() {
      others = others.map { $0.replacing(/(note|location|url) from .*? to [^,]*/) { "\($0.output.1) from - to -" } }
    }

    func isSameAnswer(as other: Notice) -> Bool {
      (type, recipient, event, user, guest) == (other.type, other.recipient, other.event, other.user, other.guest)
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

  /// Of these, only the latest one about a guest stays unread.
  private static let answers = ["invitation-answered", "guest-answered", "approval-requested"]

  /// Who makes a change. Of a block, hosts must not notice anything.
  enum Actor: Equatable {
    case user(Int), visitor, block
  }

  func notice(
    _ type: String, to recipient: Int, of event: Int? = nil, about user: Int? = nil, _ others: [String] = []
  ) -> Notice {
    Notice(
      type: type, recipient: recipient, event: event, user: user, title: event.map { events[$0].plan.title },
      actor: user.map { people[$0].displayName }, others: others)
  }

  /// The actor is never a recipient.
  mutating func notify(_ notice: Notice, by actor: Actor) {
    if !people[notice.recipient].isGone && actor != .user(notice.recipient) { queue.append(notice) }
  }

  /// Notifies the hosts and the guests who have not declined.
  mutating func notifyAll(at event: Int, _ type: String, _ others: [String] = [], by person: Int) {
    let guests = invitations.filter { $0.event == event && $0.status != "declined" }.compactMap(\.guest.user)
    for recipient in events[event].hosts + guests {
      notify(notice(type, to: recipient, of: event, others), by: .user(person))
    }
  }

  /// A visitor who waits for approval has asked for it, or has declined.
  mutating func notifyHosts(of answer: Invitation, by actor: Actor) {
    let status = answer.wanted ?? answer.status
    let isRequest = answer.status == "pending" && status != "declined"
    let words = Self.plusOnes(status == "declined" ? 0 : answer.plusOnes)
    for host in events[answer.event].hosts {
      switch answer.guest {
      case .user(let user):
        let others = ["status=\(status)"] + words
        notify(notice("invitation-answered", to: host, of: answer.event, about: user, others), by: actor)
      case .visitor:
        let type = isRequest ? "approval-requested" : "guest-answered"
        notify(notice(type, to: host, about: answer, (isRequest ? [] : ["status=\(status)"]) + words), by: actor)
      }
    }
  }

  /// A notice that names a visitor.
  private func notice(_ type: String, to host: Int, about party: Invitation, _ others: [String]) -> Notice {
    var notice = notice(type, to: host, of: party.event, ["guestId=\(id(of: party.guest))"] + others)
    notice.actor = name(of: party.guest)
    return notice
  }

  /// Notifies a guest who has moved up, and the hosts. A block must remain unknown to the hosts.
  mutating func notifyOfPromotion(of guest: Guest, at event: Int, by actor: Actor) {
    guard let index = invitation(of: guest, to: event) else { return }
    let others = Self.plusOnes(invitations[index].plusOnes)
    if let user = guest.user {
      var own = notice("waitlist-promoted", to: user, of: event, about: user, others)
      own.actor = nil
      notify(own, by: actor)
    }
    if actor == .block { return }
    for host in events[event].hosts {
      let theirs =
        guest.user.map { notice("waitlist-promoted", to: host, of: event, about: $0, others) }
        ?? notice("waitlist-promoted", to: host, about: invitations[index], others)
      notify(theirs, by: actor)
    }
  }

  static func plusOnes(_ number: Int) -> [String] { number > 0 ? ["plusOnes=\(number)"] : [] }

  // MARK: Inboxes

  /// Delivers all queued notices to the inboxes. Two users with a block between them get none about each other: they
  /// may be a guest and a co-host who was added later. A guest's answer replaces an earlier answer that is unread.
  mutating func deliver() {
    for notice in queue where !people[notice.recipient].isGone {
      if let user = notice.user, isHidden(user, from: notice.recipient) { continue }
      if Self.answers.contains(notice.type) { inbox.removeAll { !$0.isRead && $0.isSameAnswer(as: notice) } }
      inbox.append(notice)
    }
    queue = []
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

  // MARK: Forgetting

  mutating func forgetNotices(where isForgotten: (Notice) -> Bool) {
    queue.removeAll(where: isForgotten)
    inbox.removeAll(where: isForgotten)
  }

  /// - Parameter type: nil for all.
  mutating func forgetNotices(to user: Int, about event: Int, ofType type: String? = nil) {
    forgetNotices { $0.recipient == user && $0.event == event && type ?? $0.type == $0.type }
  }

  /// Deletes the notices that name a visitor, and the proposal of the visitor's answer.
  mutating func forgetNotices(about visitor: Int) {
    let id = visitors[visitor].id
    forgetNotices { $0.guest == "guestId=\(id)" || $0.others.contains("proposalId=\(id)") }
  }

  /// No one decides any more about what is proposed at an event that has ended.
  mutating func forgetProposals(at event: Int) {
    for offer in offers where offer.event == event {
      forgetNotices(to: offer.user, about: event, ofType: "host-offered")
    }
    for account in proposedVisitors(at: event).compactMap({ visitors[$0].account }) {
      forgetNotices(to: account, about: event, ofType: "answer-proposed")
    }
  }
}
