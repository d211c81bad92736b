import MusterKit
import Testing

@testable import musterctl

@Suite struct ListCopyTests {
  private func item(_ id: String, _ title: String) -> JSONValue {
    .object(["id": .string(id), "title": .string(title)])
  }

  private func changed(_ id: String, _ title: String) -> Changed {
    Changed(digest: "d-\(title)", item: item(id, title))
  }

  private var copy: ListCopy {
    ListCopy(
      timestamp: "2026-05-01T09:30:00.123456Z", keys: ["a", "b", "c"],
      items: ["a": changed("a", "A"), "b": changed("b", "B"), "c": changed("c", "C")])
  }

  @Test func `a fresh copy stays as it is`() {
    let (same, isComplete) = copy.updated(by: Verdict(invalidate: false, timestamp: copy.timestamp))
    #expect(same == copy && isComplete)
    #expect(copy.claim == Claim(timestamp: copy.timestamp, items: ["a": "d-A", "b": "d-B", "c": "d-C"]))
  }

  @Test func `a stale copy takes the new order and the changed items`() {
    let verdict = Verdict(
      invalidate: true, timestamp: "2026-05-01T10:00:00.000001Z", keys: ["d", "b", "a"],
      changed: ["d": changed("d", "D"), "b": changed("b", "B2")])
    let (new, isComplete) = copy.updated(by: verdict)
    #expect(isComplete && new.timestamp == verdict.timestamp)
    #expect(new.keys.compactMap { new.items[$0]?.item["title"] } == [.string("D"), .string("B2"), .string("A")])
    let change = CopyChange(.events, from: copy, to: new, isStale: true)
    #expect(change.items == [.new("D"), .changed("B2", members: ["title"]), .gone("C")])
    #expect(change.summary == "1 new, 1 changed, 1 gone")
  }

  @Test func `what the response left out is asked for again`() {
    let first = Verdict(
      invalidate: true, timestamp: "2026-05-01T10:00:00.000001Z", keys: ["x", "y", "a"],
      changed: ["x": changed("x", "X")], missing: ["y"])
    let (partial, isComplete) = copy.updated(by: first)
    #expect(!isComplete && partial.claim == Claim(timestamp: nil, items: ["x": "d-X", "a": "d-A"]))
    let second = Verdict(
      invalidate: true, timestamp: "2026-05-01T10:00:00.000001Z", keys: ["x", "y", "a"],
      changed: ["y": changed("y", "Y")])
    let (whole, isWhole) = partial.updated(by: second)
    #expect(isWhole && whole.keys == ["x", "y", "a"] && whole.timestamp == second.timestamp)
  }

  @Test func `a copy that lacks an item has no stamp`() {
    let verdict = Verdict(invalidate: true, timestamp: "2026-05-01T10:00:00.000001Z", keys: ["a", "z"], changed: [:])
    let (partial, isComplete) = copy.updated(by: verdict)
    #expect(!isComplete && partial.timestamp == nil)
  }

  @Test func `claims name the first part of a long list only`() {
    var long = ListCopy(timestamp: nil)
    for number in 0..<600 {
      long.keys.append("\(number)")
      long.items["\(number)"] = changed("\(number)", "T\(number)")
    }
    #expect(long.claim.items?.count == 500)
    var head = ListCopy(timestamp: "2026-05-01T10:00:00.000001Z", keys: ["a"], items: ["a": changed("a", "A")])
    head.append(RawPage(items: [item("a", "A"), item("b", "B")], digests: ["1", "2"], timestamp: nil), of: .events)
    #expect(head.keys == ["a", "b"] && head.timestamp == nil)
  }

  @Test func `every list has keys and names for its items`() {
    let person: JSONValue = .object(["id": .string("u"), "username": .string("ben")])
    let items: [CacheCollection: (JSONValue, key: String, name: String)] = [
      .profile: (person, "me", "ben"), .notificationPreferences: (.object([:]), "me", "preferences"),
      .friends: (.object(["user": person]), "u", "ben"), .blocks: (.object(["user": person]), "u", "ben"),
      .friendRequests: (.object(["id": .string("r"), "sender": person]), "r", "ben"),
      .sentFriendRequests: (.object(["id": .string("r"), "receiver": person]), "r", "ben"),
      .events: (item("e", "Pasta"), "e", "Pasta"),
      .invitations: (.object(["event": item("e", "Pasta")]), "e", "Pasta"),
      .notifications: (.object(["id": .string("n"), "message": .string("Hello")]), "n", "Hello"),
    ]
    for collection in CacheCollection.allCases {
      guard let (item, key, name) = items[collection] else {
        Issue.record("\(collection)")
        continue
      }
      #expect(collection.key(of: item) == key && collection.name(of: item) == name)
    }
  }
}
