import Postgres
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
    // Between letters of scripts that do not need them, where they would make one name look like another.
    "pay\u{200b}pal", "a\u{200d}b", "Zo\u{eb}\u{200d}l", "Мар\u{200c}ия", "Άν\u{200d}να", "日\u{200d}本", "日\u{200b}本",
    "x\u{302}\u{fe0f}", "Я\u{fe0e}на", "1\u{fe0f}5", "a\u{180b}b", "an\u{180f}a", "ana\u{200e} (Ana)", "👩\u{200d}a",
    // In their scripts, but alone, twice, or where they have no effect.
    "\u{200b}", "\u{180e}", "\u{200e}", "\u{200b}សួ", "សួ\u{200b}", "សួ\u{200b}\u{200b}ស្តី", "می\u{200c}",
    "می\u{200c}\u{200c}خواهم", "\u{180b}ᠮ", "ᠮ\u{180e}", "ᠮ\u{180b}\u{180b}", "אנה\u{200f}\u{200f}", "אנה a\u{200e}b",
    "אנה \u{202e}x", "أنا\u{2067}x\u{2069}", "👩\u{200d}", "👩\u{200d} 👩", "क\u{200d}",
    // No visible character.
    "\u{3164}", "\u{115f}\u{1160}", "\u{ffa0}", "\u{2800}", "\u{200d}", "\u{2800} \u{2800}", "\u{fe0f}", "\u{34f}",
  ]
  private static let visible = [
    "Ana", "Łucja Müller", "ana\u{301}", "👩\u{200d}👩\u{200d}👧", "❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "❤\u{fe0f}\u{200d}🔥",
    "می\u{200c}خواهم", "क्\u{200d}ष", "أنا", "אנה", "葛\u{e0100}",
    "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} 🏴", "👍🏽", "!", "\u{1f3f3}\u{fe0f}\u{200d}🌈",
    "👩🏽\u{200d}🚀", "👁\u{fe0f}\u{200d}🗨\u{fe0f}", "🧑\u{200d}🤝\u{200d}🧑", "#\u{fe0f}\u{20e3}", "㊗\u{fe0f}",
    // Malayalam's chillus, as older keyboards type them, at the end and inside; the same in related scripts.
    "പ്രവീണ്\u{200d}", "അവന്\u{200d} വന്നു", "ശ്രീ\u{d36}\u{d4d}\u{200d}", "ක්\u{200d}ෂමා", "क्\u{200c}", "র\u{200d}্যাব",
    "ಕರ\u{200d}್ನಾಟಕ", "க்\u{200c}ஷ",
    // Where a line may break.
    "សូម\u{200b}ស្វាគមន៍", "ບອນ\u{200b}ສະຫວັນ", "กรุง\u{200b}เทพ", "မြန်\u{200b}မာ", "Facebook\u{200b}ខ្មែរ",
    "ខ្មែរ\u{200b} ភាសា",
    // Mongolian, with variation selectors, the vowel separator, and a narrow space.
    "ᠮᠣᠩᠭᠣ\u{180b}ᠯ", "ᠴᠠᠭᠠ\u{180d}", "ᠰᠠᠷ\u{180e}ᠠ", "ᠨ\u{180f}ᠢ", "ᠪᠠᠭᠰᠢ\u{202f}ᠶᠢᠨ", "ᠨ\u{180b}\u{200d}",
    // Persian and Arabic, also next to Latin words, and an initial form at the end.
    "PDF\u{200c}ها", "ه\u{200d}", "ه\u{200d}.ش", "\u{600}١٢", "\u{6dd}٣",
    // Marks that put Latin words, digits and punctuation into place.
    "יוסי (Yossi)\u{200e}", "\u{200f}שלום!", "C++\u{200e} عربي", "أحمد\u{61c} (1)", "אנה\u{200f}",
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
    ("pay\u{200b}pal", "must not contain the invisible character U+200B here"),
    ("\u{200d}", "must not contain the invisible character U+200D here"),
    ("ana\u{180e}", "must not contain the invisible character U+180E here"),
    ("\u{3164}", "must not contain the invisible character U+3164 here"),
    ("an\u{e0061}a", "must not contain the invisible character U+E0061 here"),
    ("ana\u{200e}", "must not contain the text-direction character U+200E here"),
    ("\u{202e}abc", "must not contain the text-direction character U+202E here"),
    ("\u{2800}", "must contain a visible character"),
    ("🏴\u{e0067}\u{e0062}", "must not contain a flag that is cut off"),
    ("an\u{2028}a", "must be a single line, without control characters"),
  ])
  func `the message names the character that no one can see`(_ text: String, _ message: String) {
    let broken = #expect(throws: Fields.Broken.self) { try Fields.Rule<String>.line(1...9).read(.string(text)) }
    #expect(broken?.errors.map(\.message) == [message])
  }

  @Test func `a visitor's name may have the characters that its script needs`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "shows": "names"}"#)
      for name in ["יוסי (Yossi)\u{200e}", "പ്രവീണ്\u{200d}", "សូម\u{200b}ស្វាគមន៍"] {
        _ = try await app.visit(link.token, name: name)
        #expect(try await app.value("SELECT count(*) FROM visitors WHERE name = \(name)") == 1, "\(name)")
      }
      let form = try await app.formToken(of: link.token)
      let refused = try await app.submit("/e/\(link.token)", ["form": form, "name": "Zoe\u{200e}", "answer": "going"])
      #expect(refused.status == 422)
      #expect(refused.body.contains("Your name must not contain the text-direction character U+200E here."))
      // The form comes back without the character, so that it can be sent.
      #expect(refused.body.contains("value=\"Zoe\""))
      try await app.takeNotifications()
    }
  }
}
