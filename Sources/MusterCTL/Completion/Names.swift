import ArgumentParser
import Foundation
import MusterKit

/// The arguments that name things.
extension ArgumentHelp {
  static let event = ArgumentHelp(
    "The event: a part of its title, its id, or the beginning or end of the id.", valueName: "event")
  static let guest = ArgumentHelp(
    "The guest's username; for a visitor, the name, the id, or the beginning or end of the id.", valueName: "guest")
  static let proposal = ArgumentHelp(
    "A part of the event's title, or the end of the proposal's id.", valueName: "proposal")
  static let username = ArgumentHelp("The user's username.", valueName: "username")
}

/// How they are completed.
extension CompletionKind {
  static let events = listed { _ in true }

  static let hostedEvents = listed { $0.myRole != .guest && $0.status != .cancelled }

  /// Events that the user can answer.
  static let invitations = listed { $0.myRole == .guest && $0.status != .cancelled }

  private static func listed(where condition: @escaping @Sendable (Event) -> Bool) -> CompletionKind {
    .words { request, lists in Candidate.events(await lists.events(), where: condition, for: request.typed) }
  }

  static let friends = CompletionKind.words { _, lists in Candidate.people(await lists.friends()) }

  static let blocked = CompletionKind.words { _, lists in Candidate.people(await lists.blocked()) }

  /// Users with a name like the typed one; without a name, friends.
  static let anyone = CompletionKind.words { request, lists in
    let typed = request.typed
    guard !typed.isEmpty else { return Candidate.people(await lists.friends()) }
    return Candidate.people(await lists.call { try await $0.users.search(for: typed, limit: 50).map(\.person) } ?? [])
  }

  /// Users with a name like the typed one; without a name, friends of friends.
  static let others = CompletionKind.words { request, lists in
    let typed = request.typed
    guard typed.isEmpty else {
      return Candidate.people(await lists.call { try await $0.users.search(for: typed, limit: 50).map(\.person) } ?? [])
    }
    return Candidate.people(await lists.call { try await $0.users.recommended(limit: 50).map(\.user) } ?? [])
  }

  static let senders = CompletionKind.words { _, lists in
    Candidate.people(await lists.requests(.friendRequests).map(\.sender))
  }

  static let receivers = CompletionKind.words { _, lists in
    Candidate.people(await lists.requests(.sentFriendRequests).map(\.receiver))
  }

  /// Friends, with commas between them.
  static let severalFriends = CompletionKind.words { request, lists in
    let names = request.typed.split(separator: ",", omittingEmptySubsequences: false).dropLast()
    let before = names.map { "\($0)," }.joined()
    return Candidate.people(await lists.friends()).filter { !names.contains(Substring($0.word)) }
      .map { Candidate(word: before + $0.word, remark: $0.remark) }
  }

  /// Guests of the event that the word before names.
  static let guests = CompletionKind.words { request, lists in
    guard let event = await lists.event(named: request.earlier.last ?? "") else { return [] }
    let guests = await lists.call { try await $0.events.guests(of: event.id, limit: 100).items } ?? []
    let ids = ShortID(guests.map(\.id))
    return guests.map { guest in
      let isWhole = Candidate.usablePart(of: guest.name) == guest.name
      let isClear = isWhole && GuestMatch.candidates(for: guest.name, in: guests).count == 1
      let word = guest.user?.username ?? (isClear ? guest.name : ids.of(guest.id))
      return Candidate(word: word, remark: "\(guest.name), \(guest.status.text)")
    }
  }

  /// Hosts of the event that the word before names.
  static let hosts = CompletionKind.words { request, lists in
    Candidate.people(await lists.event(named: request.earlier.last ?? "")?.hosts ?? [])
  }

  static let sessions = CompletionKind.words { _, lists in
    let sessions = await lists.call { try await $0.auth.sessions(limit: 100).items } ?? []
    let ids = ShortID(sessions.map(\.id))
    return sessions.filter { !$0.current }.map { Candidate(word: ids.of($0.id), remark: $0.device ?? "") }
  }

  static let devices = CompletionKind.words { _, lists in
    let devices = await lists.call { try await $0.devices.list(limit: 100).items } ?? []
    let ids = ShortID(devices.map(\.id))
    return devices.map { Candidate(word: ids.of($0.id), remark: $0.name ?? $0.platform.rawValue) }
  }

  static let proposals = CompletionKind.words { _, lists in
    let proposals = await lists.call { try await $0.proposals.list(limit: 100).items } ?? []
    let ids = ShortID(proposals.map(\.id))
    return proposals.map { proposal in
      let title = proposal.event.title
      let part = Candidate.usablePart(of: title)
      let isClear = !part.isEmpty && proposals.count { $0.event.title.lowercased().contains(part.lowercased()) } == 1
      return Candidate(word: isClear ? part : ids.of(proposal.id), remark: "\(proposal.text) “\(title)”")
    }
  }
}

extension Candidate {
  /// Titles. If a shell cannot insert a title, a part of it; if that is no clear name, the end of the id. That also
  /// completes ids.
  static func events(
    _ events: [Event], where isWanted: (Event) -> Bool = { _ in true }, for typed: String
  ) -> [Candidate] {
    let ids = ShortID(events.map(\.id))
    let titles = Dictionary(events.map { ($0.title.folded, 1) }, uniquingKeysWith: +)
    return events.filter(isWanted).map { event in
      let id = ids.of(event.id)
      let part = usablePart(of: event.title)
      let isClear =
        part == event.title
        ? titles[part.folded] == 1 : !part.isEmpty && EventMatch.candidates(for: part, in: events).count == 1
      let title = Candidate(word: part, remark: TimeText.here.dayAndTime(event.startTime))
      let isID =
        typed.count >= EventMatch.minimumIDPart && title.completing(typed) == nil && id.hasPrefix(typed.lowercased())
      return isClear && !isID ? title : Candidate(word: id, remark: EventText(event: event).name)
    }
  }

  static func people(_ people: [Person]) -> [Candidate] {
    people.map { Candidate(word: $0.username, remark: $0.displayName == $0.username ? "" : $0.displayName) }
  }
}
