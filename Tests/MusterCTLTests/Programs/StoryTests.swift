import Foundation
import TestSupport
import Testing

/// The story of the README, done with musterctl alone.
@Suite struct StoryTests {
  @Test func `two users become friends, and both are notified of their plans`() async throws {
    try await Demo.run { demo in
      for name in ["rosa", "theo"] {
        let result = try await demo.ctl(
          ["register", name, "\(name)@example.com", "--name", name.capitalized, "--password-stdin"], as: name,
          input: "a long evening\n")
        #expect(result.output == "Registered \(name.capitalized) (\(name)) at \(demo.url). You are logged in.\n")
      }
      // Requests of accounts that have proven nothing notify no one.
      try await demo.execute("UPDATE users SET email_verified_at = now() WHERE username = 'rosa'")
      let news = try demo.terminal("watch", as: "theo")
      try await news.waitForOutput("Watching as Theo (theo)")

      #expect(try await demo.say("requests send theo", as: "rosa") == "Asked Theo (theo) to be friends.\n")
      #expect(try await demo.say("requests", as: "theo").contains("\nrosa      Rosa"))
      #expect(try await demo.say("requests accept rosa", as: "theo") == "You and Rosa (rosa) are friends.\n")
      #expect(try await demo.say("friends", as: "rosa").contains("\ntheo      Theo"))

      let created = try await demo.say(
        #"events create "Pasta night" tomorrow 19:00 --for 3h --place "Rosa's kitchen" --invite theo"#, as: "rosa")
      #expect(created.contains("Created “Pasta night”, ") && created.hasSuffix(" 19:00. Invited Theo (theo).\n"))
      #expect(try await demo.say("answer pasta going", as: "theo").hasPrefix("You are going to “Pasta night”, "))
      let edited = try await demo.say("events edit pasta --time 'tomorrow 20:00'", as: "rosa")
      #expect(edited.contains("Changed “Pasta night”: time: ") && edited.contains(" 23:00."))

      try await news.waitForOutput("“Pasta night” has changed")
      #expect(news.output.contains("Rosa wants to be friends."))
      #expect(news.output.contains("Rosa invited you to “Pasta night”."))
      news.type("\u{3}")
      #expect(try await news.exitStatus() == 0)

      try await eventually { try await demo.say("inbox", as: "rosa").contains("Theo is going to “Pasta night”.") }
      let shown = try await demo.say("events show pasta", as: "theo")
      for line in ["When    ", "Where   Rosa's kitchen", "You     going", "Guests  1 going", "theo      Theo  going"] {
        #expect(shown.contains(line), "\(shown)")
      }
      #expect(shown.contains(" 20:00 to 23:00\n"))
      #expect(try await demo.say("inbox --unread --mark-read", as: "theo").contains("•"))
      #expect(try await demo.ctl(["inbox", "--unread"], as: "theo").output.isEmpty)
    }
  }
}
