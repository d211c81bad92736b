import Foundation

@testable import MusterKit

/// Each public call of `MusterClient` once, with all of its arguments. ``DocumentCallTests`` fails if one is missing.
enum EveryCall {
  typealias Call = @Sendable (MusterClient) async throws -> Void

  static let id = User.ID.ben
  static let token = "A-token_1"
  /// The objects in the paths of the requests.
  static let pathValues: Set<String> = [id.wire, User.ID.ana.wire, token]

  static let all = accounts + people + plans + hosting + news

  private static let noon = Date(timeIntervalSince1970: 1_900_000_000)
  private static let proofs: [Reauthentication] = [.password("p"), .code("123456"), .idToken("t", nonce: "n")]

  private static let accounts: [Call] = [
    {
      _ = try await $0.auth.register(
        username: "ana", email: "ana@example.com", password: "correct horse", displayName: "Ana", device: "phone")
    },
    { _ = try await $0.auth.logIn(as: "ana", password: "correct horse", device: "phone") },
    { try await $0.auth.requestCode(email: "ana@example.com") },
    { try await $0.auth.requestOwnCode(email: "ana@example.com") },
    { _ = try await $0.auth.logIn(email: "ana@example.com", code: "123456", device: "phone") },
    { _ = try await $0.auth.logIn(emailToken: "t", device: "phone") },
    { _ = try await $0.auth.logOut() },
    { _ = try await $0.auth.sessions(limit: 1, cursor: "c") },
    { _ = try await $0.auth.sessionPages(limit: 1).first() },
    { try await $0.auth.endSession(.ben) },
    // A token of a provider does not change a password.
    {
      for proof in proofs.dropLast() { try await $0.auth.changePassword(to: "battery staple", reauthentication: proof) }
    },
    { try await $0.auth.requestPasswordReset(email: "ana@example.com") },
    { try await $0.auth.confirmPasswordReset(token: "t", newPassword: "battery staple") },
    { try await $0.auth.verifyEmail(token: "t") },
    { try await $0.auth.undoEmailChange(token: "t") },
    {
      _ = try await $0.auth.signInWithApple(
        idToken: "t", nonce: "n", displayName: "Ana", authorizationCode: "c", device: "phone")
    },
    { _ = try await $0.auth.signInWithGoogle(idToken: "t", nonce: "n", displayName: "Ana", device: "phone") },
    {
      for proof in proofs {
        try await $0.auth.linkApple(idToken: "t", nonce: "n", authorizationCode: "c", reauthentication: proof)
      }
    },
    { for proof in proofs { try await $0.auth.linkGoogle(idToken: "t", nonce: "n", reauthentication: proof) } },
    { for proof in proofs { try await $0.auth.unlinkApple(reauthentication: proof) } },
    { for proof in proofs { try await $0.auth.unlinkGoogle(reauthentication: proof) } },
    { _ = try await $0.me.get() },
    {
      for proof in proofs {
        let edit = ProfileEdit(
          username: "anna", displayName: "Anna", bio: .set("Hello."), email: "anna@example.com",
          requestsFrom: .friendsOfFriends, findableBy: .noOne, reauthentication: proof)
        _ = try await $0.me.edit(edit)
      }
    },
    { _ = try await $0.me.setPicture(Data([1]), contentType: "image/png", ifStamp: "s") },
    { try await $0.me.removePicture(ifStamp: "s") },
    { _ = try await $0.me.calendarLink() },
    { _ = try await $0.me.makeCalendarLink() },
    { try await $0.me.revokeCalendarLink() },
    { try await $0.me.delete(reauthentication: .password("p")) },
    { _ = try await $0.me.export() },
  ]

  private static let people: [Call] = [
    { _ = try await $0.users.get(.ben) },
    { _ = try await $0.users.find([.ben, .ana]) },
    { _ = try await $0.users.search(for: "ben", limit: 1) },
    { _ = try await $0.users.recommended(limit: 1) },
    { _ = try await $0.friends.list(limit: 1, cursor: "c") },
    { _ = try await $0.friends.pages(limit: 1).first() },
    { try await $0.friends.end(with: .ben) },
    { _ = try await $0.friends.requests.list(.sent, limit: 1, cursor: "c") },
    { _ = try await $0.friends.requests.pages(.sent, limit: 1).first() },
    { _ = try await $0.friends.requests.get(.ben) },
    { _ = try await $0.friends.requests.send(to: .ben) },
    { _ = try await $0.friends.requests.accept(.ben) },
    { _ = try await $0.friends.requests.decline(.ben) },
    { _ = try await $0.friends.requests.cancel(.ben) },
    { _ = try await $0.blocks.list(limit: 1, cursor: "c") },
    { _ = try await $0.blocks.pages(limit: 1).first() },
    { try await $0.blocks.block(.ben) },
    { try await $0.blocks.unblock(.ben) },
    { _ = try await $0.reports.report(user: .ben, reason: .spam, text: "Advertisements.") },
    { _ = try await $0.reports.report(event: .ben, reason: .spam, text: "Advertisements.") },
    { _ = try await $0.reports.report(guest: .ben, reason: .spam, text: "Advertisements.") },
    { _ = try await $0.reports.report(.user(.ben), reason: .spam, text: "Advertisements.", id: .ben) },
  ]

  private static let plans: [Call] = [
    { _ = try await $0.events.list(limit: 1, cursor: "c", includeParticipants: true) },
    { _ = try await $0.events.pages(limit: 1, includeParticipants: true).first() },
    { _ = try await $0.events.past(limit: 1, cursor: "c", includeParticipants: true) },
    { _ = try await $0.events.pastPages(limit: 1, includeParticipants: true).first() },
    { _ = try await $0.events.get(.ben) },
    { _ = try await $0.events.find([.ben, .ana]) },
    {
      var draft = EventDraft(title: "Picnic", startTime: noon, timeZone: .lisbon, capacity: 3, inviteeIds: [.ben])
      (draft.note, draft.endTime, draft.answerBy, draft.maxPlusOnes) = ("Bring bread.", noon, noon, 2)
      draft.location = Location(name: "Quarry", latitude: 38.7, longitude: -9.4)
      draft.url = URL(string: "https://example.com")
      _ = try await $0.events.create(draft)
    },
    {
      var edit = EventEdit(title: "Lunch", note: .clear, startTime: noon, endTime: .set(noon), capacity: .clear)
      (edit.timeZone, edit.location, edit.answerBy, edit.maxPlusOnes) = (.berlin, .clear, .set(noon), 1)
      edit.url = .clear
      _ = try await $0.events.edit(.ben, applying: edit, ifVersion: 1)
    },
    { _ = try await $0.events.cancel(.ben, ifVersion: 1) },
    { _ = try await $0.events.guests(of: .ben, limit: 1, cursor: "c") },
    { _ = try await $0.events.guestPages(of: .ben, limit: 1).first() },
    { _ = try await $0.events.invite([.ben], to: .ben) },
    { _ = try await $0.events.withdraw(.ben, from: .ben) },
    { _ = try await $0.events.answer(.going, to: .ben, plusOnes: 2) },
    { _ = try await $0.events.calendar(of: .ben) },
    { _ = try await $0.invitations.list(status: .going, limit: 1, cursor: "c", includeParticipants: true) },
    { _ = try await $0.invitations.pages(status: .going, limit: 1, includeParticipants: true).first() },
  ]

  private static let hosting: [Call] = [
    { _ = try await $0.events.addHost(.ben, to: .ben) },
    { try await $0.events.removeHost(.ben, from: .ben) },
    { _ = try await $0.events.setAnswer(of: .ben, at: .ben, to: .maybe) },
    { _ = try await $0.events.hostOffers(of: .ben) },
    { _ = try await $0.events.approve(.ben, at: .ben) },
    { _ = try await $0.events.remindGuests(of: .ben) },
    { _ = try await $0.events.duplicate(.ben, as: EventCopy(startTime: noon, endTime: .set(noon), invite: true)) },
    { _ = try await $0.events.links.list(of: .ben) },
    { _ = try await $0.events.links.get(.ben, of: .ben) },
    {
      let draft = ShareLinkDraft(
        kind: .answer, shows: .names, expiresAt: noon, maxGuests: 3, maxPlusOnes: 1, email: .required, approval: true)
      _ = try await $0.events.links.create(draft, for: .ben)
    },
    {
      let edit = ShareLinkEdit(
        kind: .answer, shows: .names, expiresAt: .set(noon), maxGuests: .set(3), maxPlusOnes: 1, email: .required,
        approval: true)
      _ = try await $0.events.links.edit(.ben, of: .ben, applying: edit)
    },
    { try await $0.events.links.revoke(.ben, of: .ben, removingVisitors: true) },
    { _ = try await $0.links.join(using: token) },
    { _ = try await $0.proposals.list() },
    { _ = try await $0.proposals.pages(limit: 1).first() },
    { _ = try await $0.proposals.accept(.ben) },
    { try await $0.proposals.decline(.ben) },
  ]

  private static let news: [Call] = [
    { _ = try await $0.notifications.list(unread: true, limit: 1, cursor: "c") },
    { _ = try await $0.notifications.pages(unread: true, limit: 1).first() },
    { _ = try await $0.notifications.markRead(ids: [.ben]) },
    { _ = try await $0.notifications.markRead(before: "2026-05-01T09:30:00.123456Z") },
    { _ = try await $0.notifications.markAllRead() },
    { _ = try await $0.notifications.preferences() },
    { _ = try await $0.notifications.setPreferences(NotificationPreferences([.eventUpdated: false])) },
    {
      // The stream has no end.
      var events = $0.notifications.stream(after: "0").makeAsyncIterator()
      _ = try await events.next()
    },
    { _ = try await $0.devices.list(limit: 1, cursor: "c") },
    { _ = try await $0.devices.pages(limit: 1).first() },
    {
      var device = DeviceRegistration(platform: .ios, token: "00ff", environment: .sandbox, topic: "app", name: "phone")
      (device.localizes, device.rotateSecret) = (true, false)
      _ = try await $0.devices.register(device)
    },
    { try await $0.devices.remove(.ben) },
    {
      let held = Claim(timestamp: nil, held: ["pQ3-x0VbT9c"], limit: 1, cursor: "c")
      let claims: [(Claim, CacheInclude?)] = [
        (Claim(timestamp: nil), .changes), (Claim(timestamp: nil), .items), (Claim(timestamp: nil), .itemsAndDigests),
        (held, nil),
      ]
      for (claim, include) in claims { _ = try await $0.cache.validate([.friends: claim], include: include) }
    },
    { for collection in CacheCollection.allCases { _ = try await $0.cache.page(of: collection, cursor: "c") } },
  ]
}

extension AsyncSequence {
  /// The examples of the document have a next page without end.
  fileprivate func first() async throws -> Element? { try await first { _ in true } }
}
