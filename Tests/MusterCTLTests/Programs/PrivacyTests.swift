import Testing

@testable import musterctl

/// Who reaches a user: preferences, and requests of unproven accounts.
@Suite struct PrivacyTests {
  @Test func `preferences are shown and changed, and requests of unproven accounts are listed apart`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben", "cleo")
      let before = try await demo.say("privacy", as: "ana")
      #expect(before == "Friend requests from  everyone\nFound by              everyone\n", "\(before)")
      let after = try await demo.say("privacy --requests-from no-one --findable-by friends-of-friends", as: "ana")
      #expect(after == "Friend requests from  no-one\nFound by              friends-of-friends\n", "\(after)")
      #expect(try await demo.say("privacy", as: "ana") == after)
      let wrong = try await demo.ctl(["privacy", "--requests-from", "friends"], as: "ana")
      #expect(wrong.status == 2 && wrong.errors.contains("friends-of-friends"))

      try await demo.execute("UPDATE users SET email_verified_at = NULL WHERE username IN ('lina', 'goran')")
      try await demo.logIn("lina")
      _ = try await demo.say("privacy --requests-from everyone --findable-by everyone", as: "ana")
      #expect(try await demo.say("requests send ana", as: "lina").hasPrefix("Asked Ana Duarte (ana)"))
      #expect(try await !demo.say("requests", as: "ana").contains("lina "))
      #expect(try await demo.say("requests --filtered", as: "ana").contains("lina "))
      let both = try await demo.ctl(["requests", "--filtered", "--sent"], as: "ana")
      #expect(both.status == 2 && both.errors.contains("either --sent or --filtered"))
      #expect(try await demo.say("requests accept lina", as: "ana").hasSuffix("(lina) are friends.\n"))
    }
  }
}
