import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// Pending writes in long lists.
@Suite struct MergedListsTests {
  private static func lists(_ count: Int) -> Lists {
    var lists = Lists()
    lists.profile = User(
      id: ScriptedServer.ana.id, username: "ana", displayName: "Ana", createdAt: ScriptedServer.noon)
    lists.friends = [Friend(user: ScriptedServer.ben, since: ScriptedServer.noon)]
    lists.blocks = []
    lists.events = (0..<count).map { number in
      var event = ScriptedServer.event(number)
      if number % 3 == 0 {
        (event.myRole, event.myStatus, event.creator) = (.creator, "creator", ScriptedServer.ana)
        event.hosts = [ScriptedServer.ana]
      }
      return event
    }
    lists.invitations = (lists.events ?? []).reversed().filter { $0.myRole == .guest }.map {
      Invitation(event: $0, status: $0.myStatus, invitedAt: ScriptedServer.noon)
    }
    return lists
  }

  private static func write(_ number: Int, on lists: Lists, _ random: inout SeededRandom) -> Write {
    let ids = (lists.events ?? []).map(\.id)
    let id = ids.randomElement(using: &random) ?? Event.ID()
    switch Int.random(in: 0..<12, using: &random) {
    case 0..<4: return .answer(Bool.random(using: &random) ? .going : .declined, to: id)
    case 4:
      let start = ScriptedServer.noon.addingTimeInterval(.random(in: 0...90_000, using: &random))
      return .createEvent(EventDraft(title: "New \(number)", startTime: start, timeZone: .lisbon))
    case 5: return .cancelEvent(id)
    case 6: return .editEvent(id, applying: EventEdit(title: "Edited \(number)"))
    case 7:
      let start = ScriptedServer.noon.addingTimeInterval(.random(in: 0...90_000, using: &random))
      return .editEvent(id, applying: EventEdit(startTime: start))
    case 8: return .invite([ScriptedServer.ben.id], to: id)
    case 9: return .editProfile(ProfileEdit(displayName: "Ana \(number)"))
    case 10 where Int.random(in: 0..<20, using: &random) == 0: return .block(ScriptedServer.ben)
    default: return .markRead([])
    }
  }

  @Test func `writes that are carried out together show as if each had been alone`() {
    for seed in 1...60 {
      var random = SeededRandom(seed: UInt64(seed))
      var expected = Self.lists(30)
      var merged = MergedLists(lists: expected)
      for round in 0..<6 {
        let steps = (0..<Int.random(in: 1...8, using: &random)).map { number in
          MergedLists.Step(
            write: Self.write(round * 100 + number, on: expected, &random),
            time: ScriptedServer.noon.addingTimeInterval(Double(round)))
        }
        for step in steps { step.write.apply(to: &expected, at: step.time) }
        merged.add(steps)
        #expect(merged.lists == expected, "seed \(seed): \(steps)")
      }
      #expect(expected != Self.lists(30))
    }
  }

  @Test func `lists are kept only if they are the same`() {
    let base = Self.lists(30)
    for seed in 1...60 {
      var random = SeededRandom(seed: UInt64(seed))
      let steps = (0..<6).map { number in
        MergedLists.Step(write: Self.write(number, on: base, &random), time: ScriptedServer.noon)
      }
      for (old, new) in [(0..<6, 0..<6), (0..<6, 1..<6), (0..<1, 1..<2), (0..<3, 0..<6), (0..<3, 3..<3)] {
        var (earlier, merged) = (MergedLists(lists: base), MergedLists(lists: base))
        earlier.add(steps[old])
        merged.add(steps[new])
        let expected = merged.lists
        merged.keep(Set(CacheCollection.allCases), of: earlier)
        #expect(merged.lists == expected, "seed \(seed): \(steps), \(old), \(new)")
      }
    }
  }

  @Test func `the writes of 50 events look at 50 of 5,000`() {
    let lists = Self.lists(5000)
    let ids = Set((lists.events ?? []).prefix(1000).enumerated().filter { $0.offset % 20 == 0 }.map(\.element.id))
    let part = EventPart(of: lists, with: ids)
    #expect(part.lists.events?.count == 50 && part.lists.invitations?.allSatisfy { ids.contains($0.event.id) } == true)
    var whole = lists
    part.replace(in: &whole)
    #expect(whole == lists)
  }
}
