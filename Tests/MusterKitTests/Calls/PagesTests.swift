import Foundation
import MusterKit
import Testing

/// Lists as sequences of pages.
@Suite struct PagesTests {
  private struct Failure: Error {}

  /// A list of the numbers below `count`, in pages of three. Cursors are the numbers with which pages begin.
  private func pages(
    of count: Int, asked: Locked<[String?]>, fails: @escaping @Sendable (Int) -> Bool = { _ in false }
  ) -> Pages<Int> {
    Pages { cursor in
      let number = asked.change { asked in
        asked.append(cursor)
        return asked.count
      }
      if fails(number) { throw Failure() }
      let start = cursor.flatMap { Int($0) } ?? 0
      let end = min(start + 3, count)
      return Page(items: Array(start..<end), nextCursor: end < count ? String(end) : nil)
    }
  }

  @Test(arguments: [0, 1, 3, 7, 9]) func `all items come once, in order`(count: Int) async throws {
    let asked = Locked<[String?]>([])
    let list = pages(of: count, asked: asked)
    var items: [Int] = []
    for try await item in list.items { items.append(item) }
    #expect(items == Array(0..<count))
    let calls = asked.value.count
    #expect(calls == max(1, (count + 2) / 3))
    var read: [Int] = []
    for try await page in list { read += page.items }
    #expect(read == items && asked.value.count == 2 * calls)
  }

  @Test func `no page is asked for before it is needed`() async throws {
    let asked = Locked<[String?]>([])
    var items = pages(of: 7, asked: asked).items.makeAsyncIterator()
    #expect(asked.value.isEmpty)
    for item in 0..<3 { #expect(try await items.next() == item && asked.value == [nil]) }
    #expect(try await items.next() == 3)
    #expect(asked.value == [nil, "3"])
    for try await _ in pages(of: 7, asked: asked).prefix(1) {}
    #expect(asked.value == [nil, "3", nil])
  }

  @Test func `after an error, the same page is asked for again`() async throws {
    let asked = Locked<[String?]>([])
    var items = pages(of: 5, asked: asked) { $0 == 2 }.items.makeAsyncIterator()
    for item in 0..<3 { #expect(try await items.next() == item) }
    await #expect(throws: Failure.self) { _ = try await items.next() }
    var rest: [Int] = []
    while let item = try await items.next() { rest.append(item) }
    #expect(rest == [3, 4] && asked.value == [nil, "3", "3"])
    #expect(try await items.next() == nil)
    #expect(asked.value.count == 3)
  }

  @Test func `a cancelled task asks for no more pages`() async throws {
    let asked = Locked<[String?]>([])
    let list = pages(of: 9, asked: asked)
    let task = Task {
      for try await item in list.items where item == 1 { withUnsafeCurrentTask { $0?.cancel() } }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(asked.value == [nil])
  }

  @Test func `guests, events and notifications come page by page from a service`() async throws {
    let server = try await MusterServer.shared.value
    let ana = try await TestUser.register("ana", at: server.url)
    var friends: [TestUser] = []
    for name in ["ben", "cleo", "dev"] {
      let friend = try await TestUser.register(name, at: server.url)
      try await friend.befriend(ana)
      friends.append(friend)
    }
    let event = try await ana.client.events.create(.planned("Picnic", inviting: friends))
    _ = try await ana.client.events.create(.planned("Quiz"))
    var guests: [User.ID?] = []
    for try await guest in ana.client.events.guestPages(of: event.id, limit: 2).items { guests.append(guest.user?.id) }
    #expect(guests.count == 3 && Set(guests) == Set(friends.map(\.id)))
    var titles: [[String]] = []
    for try await page in ana.client.events.pages(limit: 1) { titles.append(page.items.map(\.title)) }
    #expect(Set(titles) == [["Picnic"], ["Quiz"]])
    var names: [String] = []
    for try await friend in ana.client.friends.pages(limit: 2).items { names.append(friend.user.displayName) }
    #expect(names == ["dev", "cleo", "ben"])
    await #expect(throws: MusterError.self) {
      for try await _ in ana.client.events.guestPages(of: Event.ID()) {}
    }
  }
}
