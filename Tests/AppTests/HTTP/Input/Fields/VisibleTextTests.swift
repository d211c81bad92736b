import Testing

@testable import App

/// Names without hidden characters, and addresses that mail can reach.
@Suite struct VisibleTextTests {
  private static let hidden = [
    // Controls of writing direction.
    "\u{202e}ana", "ana\u{202d}", "a\u{2066}na\u{2069}", "\u{200f}ana", "ana\u{200e}", "an\u{61c}a",
    "\u{202a}ana\u{202c}",
    // Characters that displays ignore.
    "an\u{ad}a", "an\u{200b}a", "an\u{2060}a", "\u{feff}ana", "an\u{34f}a", "ana\u{180e}", "an\u{200d}a", "ana\u{200c}",
    "\u{e0061}ana", "ana\u{e0061}", "a\u{fe0f}na", "日\u{200d}", "日 \u{200d}日", "日\u{200d}\u{200d}日",
    "ana\u{fff9}", "a\u{fffa}na", "an\u{fffb}a",
    // Words in tags that make no flag: without an end, without a tag, too long, with a letter inside, twice.
    "🏴\u{e0067}\u{e0062}", "🏴\u{e007f}", "🏴\(String(repeating: "\u{e0061}", count: 7))\u{e007f}",
    "🏴\u{e0067}a\u{e007f}", "🏴\u{e0067}\u{e007f}\u{e0067}\u{e007f}",
    // No visible character.
    "\u{3164}", "\u{115f}\u{1160}", "\u{ffa0}", "\u{2800}", "\u{200d}", "\u{2800} \u{2800}", "\u{fe0f}", "\u{34f}",
  ]
  private static let visible = [
    "Ana", "Łucja Müller", "ana\u{301}", "👩\u{200d}👩\u{200d}👧", "❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "❤\u{fe0f}\u{200d}🔥",
    "می\u{200c}خواهم", "क्\u{200d}ष", "أنا", "אנה", "葛\u{e0100}",
    "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} 🏴", "👍🏽", "!", "\u{1f3f3}\u{fe0f}\u{200d}🌈",
  ]

  @Test func `names, titles and places must be visible and have no hidden characters`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      func statuses(_ text: String) async throws -> [APIResponse] {
        let time = #""startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC""#
        return [
          try await ana.send("PATCH", "users/me", #"{"displayName": "\#(text)"}"#),
          try await ana.send("POST", "events", #"{"title": "\#(text)", \#(time)}"#),
          try await ana.send("POST", "events", #"{"title": "Picnic", "location": {"name": "\#(text)"}, \#(time)}"#),
        ]
      }
      for text in Self.hidden {
        let responses = try await statuses(text)
        let scalars = text.unicodeScalars.map { String($0.value, radix: 16) }
        #expect(responses.map(\.status) == [422, 422, 422], "\(scalars)")
        #expect(responses.map(\.badFields) == [["displayName"], ["title"], ["location.name"]], "\(scalars)")
      }
      for text in Self.visible {
        let responses = try await statuses(text)
        #expect(responses.map(\.status) == [200, 201, 201], "\(text): \(responses.map(\.body))")
      }
    }
  }

  @Test(arguments: [
    "a@b", "a@b..c", "a@.b.c", "a@b.c.", ".a@b.c", "a.@b.c", "a..b@c.d", "@b.c", "a@", "a@b.", "a b@c.d", "a@b c.d",
    "a@-b.c",
    "a@b-.c", "a@b.1", "a@127.0.0.1", "a@[127.0.0.1]", "a@b_c.d", "a@b@c.d", "a,b@c.d", "a<b>@c.d", "a@b.c\u{200b}",
    "a\u{200b}@b.c", "a@b\u{301}\u{200d}.c", "a\u{202e}@b.c", "a@b.\u{e000}",
    "\(String(repeating: "a", count: 65))@b.c", "a@\(String(repeating: "b", count: 64)).c", "ana@exa/mple.com",
  ])
  func `an address that mail cannot reach is refused`(_ address: String) {
    #expect(throws: Fields.Broken.self) { try Fields.Rule<String>.email.read(.string(address)) }
  }

  @Test(arguments: [
    "a@b.cd", "ana.duarte+muster@mail.example.com", "o'brien@example.ie", "x_y-z@a-b.c-d.example",
    "ana@münchen.example",
    "пользователь@пример.рф", "用户@例子.广告", "1@2.example", "a@b.xn--p1ai", "{ana}@example.com",
    "\(String(repeating: "a", count: 64))@\(String(repeating: "b", count: 63)).example",
  ])
  func `an address that mail can reach is accepted`(_ address: String) throws {
    let kept = try Fields.Rule<String>.email.read(.string(" \(address) "))
    #expect(kept == address)
  }
}
