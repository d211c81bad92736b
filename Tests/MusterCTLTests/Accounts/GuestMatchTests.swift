import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct GuestMatchTests {
  private func guest(_ id: String, _ name: String, username: String? = nil) throws -> Guest {
    let id = try #require(User.ID(id))
    let user = username.map { Person(id: id, username: $0, displayName: name) }
    return Guest(id: Guest.ID(id), user: user, name: name, status: .going)
  }

  @Test func `finds users by usernames, visitors by names, and both by ids`() throws {
    let guests = [
      try guest("01900000-0000-7000-8000-000000000002", "Ben Okafor", username: "ben"),
      try guest("01900000-0000-7000-8006-00000000abcd", "Zoe"),
      try guest("01900000-0000-7000-8006-0000000012cd", "zoe"),
      try guest("01900000-0000-7000-8006-0000000034cd", "Ben"),
    ]
    func found(_ text: String) -> [String] { GuestMatch.candidates(for: text, in: guests).map(\.name) }
    // A visitor cannot take a user's name.
    #expect(found("@Ben") == ["Ben Okafor"] && found("BEN") == ["Ben Okafor"])
    #expect(found("zoe") == ["Zoe", "zoe"] && found("ABCD") == ["Zoe"] && found("34cd") == ["Ben"])
    #expect(found("01900000-0000-7000-8000-000000000002") == ["Ben Okafor"])
    // A visitor cannot take a guest's id as a name.
    let id = "01900000-0000-7000-8006-00000000abcd"
    let liar = try guest("01900000-0000-7000-8006-0000000056cd", id)
    #expect(GuestMatch.candidates(for: id, in: guests + [liar]).map(\.name) == ["Zoe"])
    #expect(found("Ben Okafor").isEmpty && found("cd").isEmpty && found("").isEmpty)
  }
}
