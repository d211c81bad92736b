import Testing

@testable import musterctl

@Suite struct SuggestionTests {
  @Test(arguments: [
    ("evnts", "events"), ("Events", "events"), ("freinds", "friends"), ("req", "requests"), ("goin", "going"),
    ("bne", "ben"), ("lsit", "list"), ("café", "cafe"), ("fatma", "fatima"),
  ])
  func `a mistyped word means a similar one`(typed: String, word: String) {
    let words = ["cafe", "events", "friends", "requests", "going", "maybe", "ben", "list", "fatima"]
    #expect(Suggestion.word(for: typed, in: words) == word)
  }

  @Test(arguments: ["", "b", "dance", "yes", "opera", "eventsandmore"])
  func `a word that is like no other means none`(typed: String) {
    #expect(Suggestion.word(for: typed, in: ["events", "going", "maybe", "ben", "list", "block"]) == nil)
  }

  @Test func `the most similar come first, by any word of their names`() {
    let titles = ["Quiz night", "Pasta night", "Pub quiz", "Pastry", "Paste", "Fasta"]
    #expect(Suggestion.things(for: "pasta nigth", in: titles) { [$0] }.first == "Pasta night")
    #expect(Suggestion.things(for: "quizz", in: titles) { [$0] } == ["Quiz night", "Pub quiz"])
    #expect(Suggestion.things(for: "pasta", in: titles) { [$0] }.first == "Pasta night")
    #expect(Suggestion.things(for: "pasta", in: titles) { [$0] }.count == 3)
    // Long names cost little.
    let long = String(repeating: "pasta ", count: 40)
    #expect(Suggestion.things(for: long, in: Array(repeating: long + "x", count: 2000)) { [$0] }.count == 3)
  }

  @Test(arguments: [
    (["evnts"], "There is no command 'evnts'. Did you mean 'events'?"),
    (["evnts", "show", "pasta"], "There is no command 'evnts'. Did you mean 'events'?"),
    (["events", "edt", "pasta", "--title", "x"], "There is no command 'events edt'. Did you mean 'events edit'?"),
    (
      ["events", "links", "lst", "pasta"],
      "There is no command 'events links lst'. Did you mean 'events links list'?"
    ),
    (["acept", "rosa"], "There is no command 'acept'."), (["dance"], "There is no command 'dance'."),
    (
      ["accept", "rosa"],
      "There is no command 'accept'. Did you mean 'requests accept' or 'proposals accept'?"
    ),
    (["help", "evnts"], "There is no command 'evnts'. Did you mean 'events'?"),
    (["events", "--jsn"], "the message"), (["events", "list", "x"], "the message"), ([], "the message"),
    (["answer", "x", "--", "evnts"], "the message"),
    (["--profile=ben", "events"], "The option '--profile' comes after the command."),
  ])
  func `a mistyped command gets a suggestion`(arguments: [String], text: String) {
    #expect(UsageMessage.improved("the message", for: arguments) == text)
  }
}
