import Foundation
import TestSupport
import Testing

@testable import MusterKit

@Suite struct WriteTests {
  static let all: [Write] = {
    let (one, two): (Event.ID, Event.ID) = (ScriptedServer.id(1), ScriptedServer.id(2))
    let (request, user): (FriendRequest.ID, User.ID) = (ScriptedServer.id(1), ScriptedServer.id(1))
    let guest = Guest(
      id: Guest.ID(ScriptedServer.ben.id), user: ScriptedServer.ben, name: "Ben", status: .waitlisted, plusOnes: 1,
      answeredAt: ScriptedServer.noon)
    let visitor = Guest(id: ScriptedServer.id(3), name: "Vera", status: .pending)
    let report: Report.ID = ScriptedServer.id(4)
    return [
      .answer(.going, to: one), .answer(.maybe, to: one, plusOnes: 2), .acceptRequest(request),
      .declineRequest(request), .cancelRequest(request),
      .sendRequest(to: ScriptedServer.ben, id: ScriptedServer.id(2)), .endFriendship(with: user),
      .block(ScriptedServer.ben), .unblock(user),
      .createEvent(
        EventDraft(title: "Quiz", startTime: ScriptedServer.noon, timeZone: .lisbon, inviteeIds: [user]),
        id: two),
      .editEvent(
        one, applying: EventEdit(note: .clear, endTime: .set(ScriptedServer.noon), capacity: .set(3)), ifVersion: 4),
      .editEvent(one, applying: EventEdit(title: "Quiz")), .cancelEvent(one), .cancelEvent(one, ifVersion: 2),
      .invite([user, ScriptedServer.id(2)], to: two), .withdraw(Guest.ID(user), from: two),
      .markRead([ScriptedServer.id(1), ScriptedServer.id(2)]), .markAllRead(),
      .markAllRead(before: "2026-05-01T09:30:00.123456Z", shown: [ScriptedServer.id(1)]),
      .editProfile(ProfileEdit(username: "ana", bio: .clear)), .editProfile(ProfileEdit(bio: .set("Hi."))),
      .setPreferences(NotificationPreferences([.eventInvited: false])),
      .setPicture(NewPicture(Data(), contentType: "image/png", id: report.rawValue)), .removePicture,
      .setAnswer(.going, of: guest, at: one), .approve(visitor, at: one), .addHost(user, to: one),
      .removeHost(user, from: one), .report(.user(user), reason: .spam, text: "Advertisements.", id: report),
      .report(.event(one), reason: .other, id: report), .report(.guest(visitor.id), reason: .hate, id: report),
    ]
  }()

  /// The file has the writes of ``all``, a line each. A line that has been released never changes.
  @Test func `writes that an earlier version of the app has kept are still read`() throws {
    let file = Program.checkout.appending(path: "Tests/Golden/writes.jsonl")
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    let kept = try lines.map { try JSONDecoder().decode(Write.self, from: Data($0.utf8)) }
    #expect(kept == Self.all)
  }

  @Test(arguments: all) func `a write comes back from the disk as it was`(write: Write) throws {
    let reasons: [OutboxRecord.State] = [
      .waiting, .sent, .refused(.unknown), .refused(.withoutSubject),
      .refused(.superseded(by: .answer(.declined, plusOnes: 2))),
      .refused(.superseded(by: .event(ScriptedServer.event(1)))),
      .refused(.superseded(by: .preferences(NotificationPreferences([.eventInvited: true], timestamp: "s")))),
      .refused(.refused(Problem(type: .eventCancelled, title: "Conflict", status: 409, detail: "Too late."))),
    ]
    let bases: [Basis?] = [
      nil, .answer(.waitlisted, plusOnes: 1), .copy("\"1-a\""),
      .members(["title": .string("Quiz"), "note": .null], of: .version(3)),
      .members(["title": .string("Quiz")], of: nil),
      .members(["bio": .string("Hi.")], of: .stamp("2026-05-01T09:30:00.123456Z")),
    ]
    for (number, state) in reasons.enumerated() {
      let record = OutboxRecord(
        id: UUID(), sequence: 7, write: write, basis: bases[number % bases.count], key: .random(),
        createdAt: Date(timeIntervalSince1970: 1_777_000_000.5),
        state: state)
      #expect(try JSONDecoder().decode(OutboxRecord.self, from: JSONEncoder().encode(record)) == record)
    }
  }

  @Test(arguments: all) func `a write is about what it creates`(write: Write) {
    #expect(write.createdID == nil || write.createdID == write.subject)
  }

  @Test(arguments: all) func `a write concerns the lists in which it shows, if it shows in any`(write: Write) {
    let showsNowhere = ["addHost", "report"].contains(write.name)
    #expect(write.collections.isEmpty == showsNowhere)
  }

  @Test(arguments: all) func `a write names its subject, and the people whom it is about`(write: Write) throws {
    if let subject = write.subject { #expect(write.names(subject)) }
    #expect(!write.names(UUID()))
    // Everything that the file has as an id of a user or a guest.
    let json = String(decoding: try JSONEncoder().encode(write), as: UTF8.self)
    for name in ["user", "person", "guest"] {
      for match in json.matches(of: try Regex(#""\#(name)":(?:\{[^{}]*"id":)?"([0-9A-Fa-f-]{36})""#)) {
        let id = try #require(match.output[1].substring.flatMap { UUID(uuidString: String($0)) })
        #expect(write.names(id), "\(json) does not name \(id)")
      }
    }
  }
}
