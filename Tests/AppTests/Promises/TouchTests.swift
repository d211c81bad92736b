import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Checks each verb against all lists of all users whom it may concern. A list that changes gets a new stamp, and a
/// list that does not change keeps its stamp. A worker fans out after each verb. The API document says whom each verb
/// concerns, and which stamps move needlessly. A phone that asks only for what has changed always has the same lists. A
/// copy of an event with its guests gets 304 only while it is what the service would send.
@Suite struct TouchTests {
  /// The lists of some users.
  private struct Watch {
    let phones: [Phone]
    private let collections: [App.Collection]
    private var copies: [String: [App.Collection: HeldCopy]] = [:]
    private var deltas: [String: [App.Collection: DeltaCopy]] = [:]
    private var parts: [String: [App.Collection: PartsCopy]] = [:]
    /// The live events with their guests, as these users see them.
    private var opened: [OpenedEvent] = []
    /// The past events, which have no stamp.
    private var past: [String: PastCopy] = [:]

    init(_ phones: [Phone], _ collections: [App.Collection] = Phone.everyCollection) async throws {
      self.phones = phones
      self.collections = collections
      copies = try await read()
      try await catchUp()
      opened = try await OpenedEvent.all(of: phones)
    }

    private func read() async throws -> [String: [App.Collection: HeldCopy]] {
      try await phones.first?.app.fanOut()
      return try await withThrowingTaskGroup(of: (String, App.Collection, HeldCopy).self) { group in
        for phone in phones {
          for collection in collections {
            group.addTask { (phone.username, collection, try await phone.copy(of: collection)) }
          }
        }
        return try await group.reduce(into: [:]) { $0[$1.0, default: [:]][$1.1] = $1.2 }
      }
    }

    /// Brings copies up to date by what has changed, and compares them with the lists.
    private mutating func catchUp() async throws {
      for phone in phones {
        try await past[phone.username, default: PastCopy()].validate(for: phone)
        try await past[phone.username]?.expectRight(for: phone)
        try await phone.catchUp(&deltas[phone.username, default: [:]], of: collections)
        try await phone.catchUp(&parts[phone.username, default: [:]], of: collections)
        for collection in collections {
          let (copy, name) = (copies[phone.username]?[collection], "\(collection) of \(phone.username)")
          #expect(deltas[phone.username]?[collection]?.held == copy, "\(name)")
          #expect(parts[phone.username]?[collection]?.held == copy, "\(name), by parts")
        }
      }
    }

    /// Performs an action, then compares all lists.
    ///
    /// - Parameter needless: the stamps that move although their lists do not change.
    mutating func expect(
      _ what: String, changes: Bool = true, needless: [String: Set<App.Collection>] = [:],
      sourceLocation: SourceLocation = #_sourceLocation, _ action: () async throws -> Void
    ) async throws {
      let before = copies
      try await action()
      copies = try await read()
      try await catchUp()
      for copy in opened { try await copy.expectNoFalse304("\(what)", sourceLocation: sourceLocation) }
      opened = try await OpenedEvent.all(of: phones)
      var (moved, found): (Int, [String: Set<App.Collection>]) = (0, [:])
      for phone in phones {
        for collection in collections {
          let old = try #require(before[phone.username]?[collection])
          let new = try #require(copies[phone.username]?[collection])
          // The profile contains its own stamp.
          let isOther = old.items.replacing(old.stamp, with: "") != new.items.replacing(new.stamp, with: "")
          let name = "\(what): \(collection) of \(phone.username)"
          if isOther { #expect(old.stamp < new.stamp, "\(name)", sourceLocation: sourceLocation) }
          if old.stamp != new.stamp { moved += 1 }
          if old.stamp != new.stamp, !isOther { found[phone.username, default: []].insert(collection) }
        }
      }
      #expect(found == needless, "\(what)", sourceLocation: sourceLocation)
      #expect((moved > 0) == (changes || !needless.isEmpty), "\(what)", sourceLocation: sourceLocation)
    }
  }

  private func run(_ body: @escaping @Sendable (TestApp, Neighbours) async throws -> Void) async throws {
    let watch = StampLockWatch()
    try await TestApp.run(["MUSTER_THROTTLING": "off"], logger: watch.logger) { app in
      let people = try await Neighbours.gather(in: app)
      try await watch.run(in: app) { try await body(app, people) }
      try await app.takeNotifications()
    }
    #expect(watch.looks > 10)
    #expect(watch.faults == [], "stamps were locked while the server waited for the service")
  }

  @Test func `verbs on profiles`() async throws {
    try await run { app, people in
      let ana = people.ana
      var watch = try await Watch([ana] + people.others)
      try await watch.expect("another display name") { try await ana.editProfile(#"{"displayName": "Anita"}"#) }
      try await watch.expect("the same display name", changes: false) {
        try await ana.editProfile(#"{"displayName": "Anita"}"#)
      }
      try await watch.expect("another username") { try await ana.editProfile(#"{"username": "anita"}"#) }
      try await watch.expect("a bio") { try await ana.editProfile(#"{"bio": "Climbs."}"#) }
      try await watch.expect("other preferences") {
        try await ana.editProfile(#"{"requestsFrom": "no-one", "findableBy": "friends-of-friends"}"#)
      }
      try await watch.expect("the same preferences", changes: false) {
        try await ana.editProfile(#"{"requestsFrom": "no-one", "findableBy": "friends-of-friends"}"#)
      }
      try await watch.expect("a picture") { try await ana.putPicture(Sample.png()) }
      try await watch.expect("the same picture", changes: false) { try await ana.putPicture(Sample.png()) }
      try await watch.expect("another picture") { try await ana.putPicture(Sample.png(1)) }
      try await watch.expect("removing the picture") { try await ana.removePicture() }
      try await watch.expect("removing it again", changes: false) { try await ana.removePicture() }
      let address = #"{"email": "new@example.com", "currentPassword": "\#(ana.password)"}"#
      try await watch.expect("another address") { try await ana.editProfile(address) }
      try await watch.expect("the same address", needless: ["ana": [.profile]]) { try await ana.editProfile(address) }
      let mails = try await app.takeMails().filter { $0.type == "mail-verify-email" }
      let token: String = try #require(mails.last?.token)
      try await watch.expect("verifying the address") { _ = try await ana.verify(token) }
      try await watch.expect("logging in, refreshing and reading", changes: false) {
        _ = try await app.logIn("anita", ana.password)
        _ = try await app.confirmCode(byToken: try await app.takeCode(of: "new@example.com").token)
        try await ana.refresh()
        _ = try await ana.get("users/me")
      }
    }
  }

  @Test func `verbs on friends`() async throws {
    try await run { app, people in
      let (cleo, dev, finn, gil, hugo) = (people.cleo, people.dev, people.finn, people.gil, people.hugo)
      var watch = try await Watch([people.ana] + people.others)
      var request = ""
      try await watch.expect("sending a request") { request = try await hugo.sendFriendRequest(to: gil) }
      try await watch.expect("sending it again", changes: false) {
        try await hugo.sendFriendRequest(to: gil, expecting: 200)
      }
      try await watch.expect("cancelling it") { try await hugo.cancel(request) }
      try await watch.expect("cancelling it again", changes: false) { try await hugo.cancel(request) }
      request = try await hugo.sendFriendRequest(to: gil)
      watch = try await Watch(watch.phones)
      try await watch.expect("declining") { try await gil.decline(request) }
      try await watch.expect("declining again", changes: false) { try await gil.decline(request) }
      try await watch.expect("sending one back") { request = try await gil.sendFriendRequest(to: hugo) }
      try await watch.expect("accepting") { try await hugo.accept(request) }
      try await watch.expect("accepting again", changes: false) { try await hugo.accept(request) }
      try await watch.expect("sending one to a friend", changes: false) {
        try await hugo.sendFriendRequest(to: gil, expecting: 409)
      }
      try await watch.expect("meeting a request") { try await cleo.sendFriendRequest(to: people.ana, expecting: 200) }
      try await watch.expect("unfriending") { try await people.ana.unfriend(cleo) }
      try await watch.expect("unfriending again", changes: false) { try await people.ana.unfriend(cleo) }
      try await watch.expect("reporting", changes: false) { try await hugo.report(gil) }
      // Pairs with a request, with a friendship, and with nothing between them.
      for (one, other) in [(dev, people.ana), (gil, hugo), (finn, hugo)] {
        try await watch.expect("blocking") { try await one.block(other) }
        try await watch.expect("blocking again", changes: false) { try await one.block(other) }
        try await watch.expect("being blocked in return", changes: false) { try await other.block(one) }
        try await watch.expect("unblocking") { try await one.unblock(other) }
        try await watch.expect("unblocking in return") { try await other.unblock(one) }
        try await watch.expect("unblocking again", changes: false) { try await other.unblock(one) }
      }
    }
  }

  @Test func `verbs on events`() async throws {
    try await run { app, people in
      let (ana, ben, emre, gil, hugo) = (people.ana, people.ben, people.emre, people.gil, people.hugo)
      for friend in [emre, gil, hugo] { try await app.befriend(ana, friend) }
      var watch = try await Watch([ana] + people.others)
      var event = ""
      try await watch.expect("creating an event") {
        event = try await ana.createEvent("Swim", inviting: [ben, gil], capacity: 1)["id"].string ?? ""
      }
      try await watch.expect("inviting") { try await ana.invite([emre, hugo], to: event) }
      try await watch.expect("inviting again", changes: false) { try await ana.invite([emre, hugo], to: event) }
      try await watch.expect("editing") { try await ana.edit(event, #"{"title": "Dive", "note": "Deep"}"#) }
      try await watch.expect("editing nothing", changes: false) { try await ana.edit(event, #"{"title": "Dive"}"#) }
      try await watch.expect("going") { try await ben.answer("going", to: event) }
      try await watch.expect("going again", changes: false) { try await ben.answer("going", to: event) }
      try await watch.expect("waiting") { try await gil.answer("going", to: event) }
      try await watch.expect("a second guest waiting") { try await emre.answer("going", to: event) }
      try await watch.expect("giving a place up") { try await ben.answer("maybe", to: event) }
      try await watch.expect("withdrawing, and moving up") { try await ana.withdraw(gil, from: event) }
      try await watch.expect("withdrawing again", changes: false) { try await ana.withdraw(gil, from: event) }
      try await watch.expect("a deadline") { try await ana.edit(event, #"{"answerBy": "2020-01-01T00:00:00Z"}"#) }
      try await watch.expect("setting an answer") { try await ana.setAnswer("going", of: hugo, to: event) }
      try await watch.expect("setting it again", changes: false) {
        try await ana.setAnswer("going", of: hugo, to: event)
      }
      try await watch.expect("no deadline") { try await ana.edit(event, #"{"answerBy": null}"#) }
      try await ana.setAnswer("maybe", of: hugo, to: event)
      watch = try await Watch(watch.phones)
      try await watch.expect("duplicating") {
        try await ana.duplicate(event, #"{"startTime": "2031-05-01T18:00:00Z", "invite": true}"#)
      }
      let later = try await ana.createEvent("Later", inviting: [ben])["id"].string ?? ""
      watch = try await Watch(watch.phones)
      try await watch.expect("reminding") { try await ana.remind(of: later) }
      try await watch.expect("reminding again", changes: false) { try await ana.remind(of: later) }
      try await watch.expect("offering a friend to be a host") { try await ana.offerHost(gil, to: event) }
      try await watch.expect("offering it again", changes: false) { try await ana.offerHost(gil, to: event) }
      try await watch.expect("taking the offer back") { try await ana.removeHost(gil, from: event) }
      try await ana.offerHost(gil, to: event)
      watch = try await Watch(watch.phones)
      try await watch.expect("declining the offer") {
        try await gil.decline(proposal: try await gil.proposals(about: event)[0])
      }
      try await watch.expect("making a friend a host") { try await ana.addHost(gil, to: event) }
      try await watch.expect("making a host a host", changes: false) { try await ana.addHost(gil, to: event) }
      try await watch.expect("editing by a host") { try await gil.edit(event, #"{"note": "Deeper"}"#) }
      try await watch.expect("making a guest a host") { try await ana.addHost(emre, to: event) }
      try await watch.expect("a new name of a host") { try await gil.editProfile(#"{"displayName": "Gilda"}"#) }
      try await watch.expect("a block between hosts") { try await gil.block(emre) }
      try await watch.expect("unblocking a host") { try await gil.unblock(emre) }
      try await watch.expect("a host who leaves") { try await emre.removeHost(emre, from: event) }
      try await watch.expect("removing a host") { try await ana.removeHost(gil, from: event) }
      try await watch.expect("removing no host", changes: false) { try await ana.removeHost(gil, from: event) }
      try await ana.addHost(gil, to: event)
      watch = try await Watch(watch.phones)
      try await watch.expect("blocking a host") { try await gil.block(ana) }
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      try await watch.expect("creating, editing and reading links", changes: false) {
        let other = try await ana.createLink(to: event, #"{"kind": "view"}"#)
        _ = try await ana.send("PATCH", "events/\(event)/links/\(other.id)", #"{"shows": "names"}"#)
        _ = try await app.send("GET", "/e/\(link.token)")
        _ = try await ana.send("DELETE", "events/\(event)/links/\(other.id)")
      }
      try await watch.expect("joining through a link") { _ = try await emre.join(link.token) }
      try await watch.expect("joining again", changes: false) { _ = try await emre.join(link.token) }
      try await watch.expect("more places") { try await ana.edit(event, #"{"capacity": null}"#) }
      try await watch.expect("plus-ones") { try await ana.edit(event, #"{"maxPlusOnes": 2}"#) }
      try await watch.expect("bringing others") { try await emre.answer("going", plusOnes: 2, to: event) }
      try await watch.expect("bringing as many", changes: false) {
        try await emre.answer("going", plusOnes: 2, to: event)
      }
      try await watch.expect("bringing fewer") { try await emre.answer("going", plusOnes: 1, to: event) }
      let made = try MadeZones(version: "9999a", ["Europe/Berlin": .init(rule: "CET-1")])
      defer { made.remove() }
      let rules = try made.database()
      try await watch.expect("new rules of the time zone") {
        _ = try await app.service.change { try await Event.keepLocalTimes(by: rules, atMost: 20, in: $0) }
      }
      try await watch.expect("the same rules again", changes: false) {
        _ = try await app.service.change { try await Event.keepLocalTimes(by: rules, atMost: 20, in: $0) }
      }
      try await watch.expect("blocking a guest") { try await ana.block(hugo) }
      try await watch.expect("cancelling") { try await ana.cancelEvent(event) }
      try await watch.expect("cancelling again", changes: false) { try await ana.cancelEvent(event) }
      try await watch.expect("blocking the host of a cancelled event") { try await ben.block(ana) }
      try await watch.expect("a name that some do not see") { try await ana.editProfile(#"{"displayName": "Anita"}"#) }
      try await watch.expect("seeing the host again") { try await ben.unblock(ana) }
      try await watch.expect("archiving") {
        let later = Timestamp.now().adding(seconds: 20 * 365 * 86_400)
        _ = try await app.service.change { try await Event.archive(endedBefore: later, atMost: 20, in: $0) }
      }
      try await watch.expect("archiving again", changes: false) {
        _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 20, in: $0) }
      }
      try await app.befriend(ana, ben)
      let last = try await ben.createEvent("Last", inviting: [ana, gil])["id"].string ?? ""
      try await ana.answer("going", to: last)
      let heirs = try await ana.createEvent("Heirs", inviting: [ben])["id"].string ?? ""
      try await ana.addHost(emre, to: heirs)
      watch = try await Watch(people.others)
      // Gil has blocked her, and sees none of the notifications that name her.
      try await watch.expect("deleting an account", needless: ["gil": [.notifications]]) {
        try await ana.deleteAccount()
      }
    }
  }

  @Test func `verbs on requests of an unverified account`() async throws {
    try await run { app, people in
      // He has nothing to do with her or ben.
      let (ana, ben, hugo) = (people.ana, people.ben, people.hugo)
      try await app.database.execute("UPDATE users SET email_verified_at = NULL WHERE id = \(hugo.userID)")
      var watch = try await Watch([ana] + people.others)
      var request = ""
      try await watch.expect("a filtered request") { request = try await hugo.sendFriendRequest(to: ana) }
      try await watch.expect("the same request", changes: false) {
        try await hugo.sendFriendRequest(to: ana, expecting: 200)
      }
      try await watch.expect("another name of the sender") { try await hugo.editProfile(#"{"displayName": "H."}"#) }
      try await watch.expect("declining it") { try await ana.decline(request) }
      try await watch.expect("asking again") { request = try await hugo.sendFriendRequest(to: ana) }
      try await watch.expect("accepting it") { try await ana.accept(request) }
      try await watch.expect("a second filtered request") { try await hugo.sendFriendRequest(to: ben) }
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(hugo.userID)")
      watch = try await Watch(watch.phones)
      try await watch.expect("releasing it") {
        try await app.service.change { change in
          try change.lockAhead(hugo.userID, for: .update)
          try await FriendRequest.release(of: hugo.userID, in: change)
        }
      }
      try await watch.expect("releasing nothing", changes: false) {
        try await app.service.change { try await FriendRequest.release(of: hugo.userID, in: $0) }
      }
    }
  }

  @Test func `verbs of visitors, and on them`() async throws {
    try await run { app, people in
      let (ana, ben, hugo) = (people.ana, people.ben, people.hugo)
      for friend in [people.gil, people.emre] { try await app.befriend(ana, friend) }
      let event =
        try await ana.createEvent("Swim", inviting: [ben, people.gil, people.emre], capacity: 2)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 3}"#)
      let approving = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(hugo.userID)")
      var watch = try await Watch([ana] + people.others)
      var visit = Visit(app: app, token: "")
      try await watch.expect("a visitor's answer") { visit = try await app.visit(link.token, plusOnes: 1) }
      try await watch.expect("the same answer", changes: false) { try await visit.answer("going", plusOnes: 1) }
      try await watch.expect("another answer") { try await visit.answer("maybe") }
      try await watch.expect("going again") { try await visit.answer("going") }
      try await ben.answer("going", to: event)
      watch = try await Watch(watch.phones)
      try await watch.expect("withdrawing, and moving up") { try await visit.act("withdraw") }
      try await watch.expect("erasing") { try await visit.act("erase", expecting: 200) }
      try await watch.expect("erasing again", changes: false) { try await visit.act("erase", expecting: 404) }
      try await watch.expect("a visitor who waits for approval") { visit = try await app.visit(approving.token) }
      try await watch.expect("approving a visitor") {
        _ = try await ana.send("POST", "events/\(event)/invitations/\(visit.id)/approve")
      }
      try await watch.expect("approving again", changes: false) {
        _ = try await ana.send("POST", "events/\(event)/invitations/\(visit.id)/approve")
      }
      try await watch.expect("setting the answer of a visitor") {
        _ = try await ana.send("PUT", "events/\(event)/invitations/\(visit.id)", #"{"status": "maybe"}"#)
      }
      try await watch.expect("setting it again", changes: false) {
        _ = try await ana.send("PUT", "events/\(event)/invitations/\(visit.id)", #"{"status": "maybe"}"#)
      }
      try await watch.expect("removing a visitor") {
        _ = try await ana.send("DELETE", "events/\(event)/invitations/\(visit.id)")
      }
      let flooded = try await ana.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 3}"#)
      try await watch.expect("many visitors") {
        for name in ["Zoe", "Yan", "Xia"] { try await app.visit(flooded.token, name: name) }
      }
      try await watch.expect("removing the visitors of a link") {
        _ = try await ana.send("DELETE", "events/\(event)/links/\(flooded.id)?visitors=remove")
      }
      try await watch.expect("removing them again", changes: false) {
        _ = try await ana.send("DELETE", "events/\(event)/links/\(flooded.id)?visitors=remove")
      }
      try await watch.expect("asking to join") { _ = try await people.finn.join(approving.token) }
      try await watch.expect("approving an invitee") {
        _ = try await ana.send("POST", "events/\(event)/invitations/\(people.finn.id)/approve")
      }
      let lapsing = try await app.visit(link.token, email: "lapsing@x.org")
      visit = try await app.visit(link.token, email: "\(hugo.username)@example.com")
      let mails = try await app.takeMails().filter { $0.to == "\(hugo.username)@example.com" }
      let mailed = Visit(app: app, token: try #require(mails.last?.page))
      try await app.database.execute("UPDATE visitors SET lapses_at = now() WHERE id = \(lapsing.id)")
      watch = try await Watch(watch.phones)
      try await watch.expect("the end of an answer that was not confirmed") {
        _ = try await app.service.change { try await Visitor.endLapsed(atMost: 10, in: $0) }
      }
      try await watch.expect("confirming and unsubscribing", changes: false) {
        try await mailed.act("confirm")
        try await mailed.act("unsubscribe")
      }
      try await watch.expect("merging into an account") {
        let merged = try await Visitor.mergeMarked(in: app.service, logger: .quiet)
        #expect(merged == 1)
      }
      visit = try await app.confirmedVisit(link.token, "declined", email: "\(hugo.username)@example.com")
      watch = try await Watch(watch.phones)
      try await watch.expect("proposing to a guest") {
        let merged = try await Visitor.mergeMarked(in: app.service, logger: .quiet)
        #expect(merged == 1)
      }
      try await watch.expect("accepting the answer") {
        try await hugo.accept(proposal: try await hugo.proposals(about: event)[0])
      }
      visit = try await app.confirmedVisit(link.token, "maybe", email: "\(hugo.username)@example.com")
      _ = try await Visitor.mergeMarked(in: app.service, logger: .quiet)
      try await app.fanOut()
      watch = try await Watch(watch.phones)
      try await watch.expect("declining the answer") {
        try await hugo.decline(proposal: try await hugo.proposals(about: event)[0])
      }
      visit = try await app.confirmedVisit(link.token, "maybe", email: "\(hugo.username)@example.com")
      _ = try await Visitor.mergeMarked(in: app.service, logger: .quiet)
      try await app.fanOut()
      watch = try await Watch(watch.phones)
      try await watch.expect("a block with a proposal between the two") { try await hugo.block(ana) }
      try await hugo.unblock(ana)
      visit = try await app.confirmedVisit(link.token, email: "\(hugo.username)@example.com")
      try await hugo.block(ana)
      watch = try await Watch(watch.phones)
      try await watch.expect("merging across a block") {
        let merged = try await Visitor.mergeMarked(in: app.service, logger: .quiet)
        #expect(merged == 1)
      }
    }
  }

  @Test func `verbs on events with too many guests for counts in lists`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(Event.maximumCounted + 1, around: ana)
      let event = try await ana.createEvent(inviting: Array(guests.dropLast()), capacity: 1)["id"].string ?? ""
      let watched = [ana, guests[0], guests[1], guests[2], guests[199], guests[200]]
      var watch = try await Watch(watched, [.events, .invitations])
      try await watch.expect("an answer that all guests see") { try await guests[0].answer("going", to: event) }
      try await watch.expect("the 201st guest") { try await ana.invite([guests[200]], to: event) }
      try await watch.expect("an answer that few guests see") { try await guests[1].answer("going", to: event) }
      try await watch.expect("a promotion") { try await guests[0].answer("maybe", to: event) }
      try await watch.expect("counts in lists again") { try await ana.withdraw(guests[200], from: event) }
      try await app.takeNotifications()
    }
  }
}
