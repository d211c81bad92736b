import Foundation
import TestSupport
import Testing

@testable import MusterKit

@Suite struct WriteTests {
  static let all: [Write] = {
    let (one, two): (Event.ID, Event.ID) = (ScriptedServer.id(1), ScriptedServer.id(2))
    let (request, user): (FriendRequest.ID, User.ID) = (ScriptedServer.id(1), ScriptedServer.id(1))
    return [
      .answer(.going, to: one), .answer(.maybe, to: one, plusOnes: 2), .acceptRequest(request),
      .declineRequest(request), .cancelRequest(request),
      .sendRequest(to: ScriptedServer.ben, temporaryID: ScriptedServer.id(2)), .endFriendship(with: user),
      .block(ScriptedServer.ben), .unblock(user),
      .createEvent(
        EventDraft(title: "Quiz", startTime: ScriptedServer.noon, timeZone: .lisbon, inviteeIds: [user]),
        temporaryID: two),
      .editEvent(
        one, applying: EventEdit(note: .clear, endTime: .set(ScriptedServer.noon), capacity: .set(3)), ifVersion: 4),
      .editEvent(one, applying: EventEdit(title: "Quiz")), .cancelEvent(one), .cancelEvent(one, ifVersion: 2),
      .invite([user, ScriptedServer.id(2)], to: two), .withdraw(Guest.ID(user), from: two),
      .markRead([ScriptedServer.id(1), ScriptedServer.id(2)]), .markAllRead(),
      .markAllRead(before: "2026-05-01T09:30:00.123456Z", shown: [ScriptedServer.id(1)]),
      .editProfile(ProfileEdit(username: "ana", bio: .clear)), .editProfile(ProfileEdit(bio: .set("Hi."))),
      .setPreferences(NotificationPreferences([.eventInvited: false])),
    ]
  }()

  private static func uuid(_ number: Int) -> UUID { (ScriptedServer.id(number) as Event.ID).rawValue }

  /// The file has the writes of ``all``, a line each. A line that has been released never changes.
  @Test func `writes that an earlier version of the app has kept are still read`() throws {
    let file = Program.checkout.appending(path: "Tests/Golden/writes.jsonl")
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    let kept = try lines.map { try JSONDecoder().decode(Write.self, from: Data($0.utf8)) }
    #expect(kept == Self.all)
  }

  @Test(arguments: all) func `a write comes back from the disk as it was`(write: Write) throws {
    let reasons: [OutboxRecord.State] = [
      .waiting, .sent(id: nil), .sent(id: Self.uuid(9)), .settled(id: Self.uuid(9)),
      .refused(.unknown), .refused(.withoutSubject),
      .refused(.refused(Problem(type: .eventCancelled, title: "Conflict", status: 409, detail: "Too late."))),
    ]
    for state in reasons {
      let record = OutboxRecord(
        id: UUID(), sequence: 7, write: write, key: .random(), createdAt: Date(timeIntervalSince1970: 1_777_000_000.5),
        state: state)
      #expect(try JSONDecoder().decode(OutboxRecord.self, from: JSONEncoder().encode(record)) == record)
    }
  }

  @Test(arguments: all) func `a write names its real subject once that is known`(write: Write) throws {
    let real = Self.uuid(77)
    guard let subject = write.subject else {
      #expect(write.resolved([Self.uuid(1): real]) == write)
      return
    }
    switch write {
    case .endFriendship, .block, .unblock: #expect(write.resolved([subject: real]) == write)
    default: #expect(write.resolved([subject: real]).subject == real)
    }
    #expect(write.resolved([Self.uuid(88): real]) == write)
    #expect(write.resolved([subject: real]).collections == write.collections)
  }

  @Test(arguments: all) func `a write concerns the lists in which it shows`(write: Write) {
    #expect(!write.collections.isEmpty)
  }
}
