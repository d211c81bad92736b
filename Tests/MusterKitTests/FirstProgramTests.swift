import Foundation
import MusterKit
import TestSupport
import Testing

/// `Examples/FirstProgram`: an app in one file, run by a user, with and without a network.
@Suite struct FirstProgramTests {
  private struct Scene {
    let proxy: HTTPFaultProxy
    let folder: URL
    let ana: TestUser
    let ben: TestUser
    let cleo: TestUser

    /// Runs the program as ben.
    func callAsFunction(_ words: String..., expecting status: Int32 = 0) async throws -> String {
      let program = try await Program(
        Program.path("first-program"), [folder.path, proxy.url.absoluteString] + words)
      #expect(try await program.exitStatus() == status, "\(words): \(program.standardOutput) \(program.standardError)")
      return program.standardOutput
    }
  }

  /// Ana hosts a picnic, to which her friends ben and cleo are invited. Ben and cleo are strangers.
  private func run(_ body: (Scene, Event) async throws -> Void) async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let cleo = try await TestUser.register("cleo", at: shared.url)
    try await ana.befriend(cleo)
    var draft = EventDraft.planned("Picnic", capacity: 3, inviting: [ben, cleo])
    draft.maxPlusOnes = 1
    let event = try await ana.client.events.create(draft)
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
    try await URL.withFolder { folder in
      let plans = Scene(proxy: proxy, folder: folder, ana: ana, ben: ben, cleo: cleo)
      #expect(try await plans("login", ben.username, ben.password) == "Hello, ben.\n")
      try await body(plans, event)
    }
    await proxy.close()
  }

  @Test func `feed, event, guests and answers work with and without a network`() async throws {
    try await run { plans, event in
      #expect(try await plans("feed").contains("Picnic: what do you say?, 0 going\n"))
      let page = try await plans("event", "picnic")
      #expect(page.contains("by ana\n") && page.contains("  cleo: invited\n") && page.hasSuffix("You can answer.\n"))
      // In a tunnel.
      plans.proxy.isOffline = true
      #expect(try await plans("event", "Picnic").contains("  cleo: invited\n"))
      #expect(try await plans("answer", "picnic", "going", "2", expecting: 1) == "You can bring 1.\n")
      let answered = try await plans("answer", "picnic", "going", "1")
      #expect(answered.hasPrefix("Picnic: you: going +1\nYou are offline."))
      #expect(answered.hasSuffix("Changes that wait for a network: 1\n"))
      let feed = try await plans("feed")
      #expect(feed.contains("Picnic: you: going +1, 2 going (not sent yet)\n"))
      #expect(try await plans("event", "Picnic").contains("  ben: going +1\n"))
      #expect(try await plans("search", "cleo", expecting: 1) == "There is no connection.\n")
      // Outside again.
      plans.proxy.isOffline = false
      #expect(try await plans("feed").contains("Picnic: you: going +1, 2 going\n"))
      let guests = try await plans.ana.client.events.guests(of: event.id).items
      #expect(guests.contains { $0.user?.id == plans.ben.id && $0.status == .going && $0.plusOnes == 1 })
    }
  }

  @Test func `a newer answer from elsewhere stays, and the user learns of it`() async throws {
    try await run { plans, event in
      #expect(try await plans("feed").contains("Picnic"))
      plans.proxy.isOffline = true
      _ = try await plans("answer", "picnic", "going")
      try await plans.ben.client.events.answer(.declined, to: event.id)
      plans.proxy.isOffline = false
      let feed = try await plans("feed")
      #expect(feed.contains("Picnic: you: declined, 0 going\n") && feed.contains("Not done: answer("))
      #expect(!(try await plans("feed")).contains("Not done"))
    }
  }

  @Test func `search, requests, new events and the inbox`() async throws {
    try await run { plans, _ in
      let name = plans.cleo.username
      #expect(try await plans("search", name).hasPrefix("cleo (\(name)): 1 friends in common\n"))
      #expect(try await plans("ask", name) == "You have asked cleo.\n")
      #expect(try await plans("ask", name, expecting: 1) == "cleo: has your request.\n")
      #expect(try await plans("create", "Quiz", "24", name, expecting: 1) == "\(name) is no friend of yours.\n")
      plans.proxy.isOffline = true
      #expect(try await plans("create", "Quiz", "24", plans.ana.username).hasPrefix("You host “Quiz”.\n"))
      #expect(try await plans("feed").contains("Quiz: you host, 0 going (not sent yet)\n"))
      plans.proxy.isOffline = false
      #expect(try await plans("feed").contains("Quiz: you host, 0 going\n"))
      let invited = try await plans.ana.client.invitations.list().items
      #expect(invited.map(\.event.title) == ["Quiz"])
      try await eventually { try await plans("inbox").contains("Unread: 1\n* ") }
      #expect(try await plans("read") == "")
      #expect(try await plans("inbox").hasPrefix("Unread: 0\n  "))
    }
  }

  @Test func `the program stays short`() throws {
    let file = Program.checkout.appending(path: "Examples/FirstProgram/Plans.swift")
    #expect(
      try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false).count < 235
    )
  }
}
