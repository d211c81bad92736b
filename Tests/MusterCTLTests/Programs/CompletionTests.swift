import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import musterctl

/// The Tab key of bash, with the script that musterctl prints.
@Suite struct CompletionTests {
  /// Tests may run on a busy machine.
  private static let patience = ["MUSTER_COMPLETION_LIMIT": "30"]

  /// The words that bash offers for the last word of a line.
  ///
  /// - Parameter words: of the command line, as they are typed. The cursor is behind the last one.
  private func offers(
    _ words: [String], in demo: Demo, as profile: String = "ana", environment: [String: String] = patience
  ) async throws -> (words: [String], errors: String) {
    let script = """
      set -f
      eval "$(musterctl --generate-completion-script bash)"
      COMP_WORDS=("$@")
      COMP_CWORD=$(($# - 1))
      COMP_LINE="$*"
      COMP_POINT=${#COMP_LINE}
      _musterctl musterctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let result = try await shell(["-c", script, "bash", "musterctl"] + words, in: demo, as: profile, environment)
    return (result.output.split(separator: "\n").map(String.init), result.errors)
  }

  private func shell(
    _ arguments: [String], in demo: Demo, as profile: String, _ environment: [String: String] = [:]
  ) async throws -> (output: String, errors: String) {
    let folder = URL(filePath: Program.path("musterctl")).deletingLastPathComponent().path
    let variables = demo.environment(as: profile).merging(["PATH": "\(folder):/usr/bin:/bin"]) { $1 }
      .merging(environment) { $1 }
    let program = try await Program("/bin/bash", arguments, environment: variables, in: demo.home.path)
    _ = try await program.exitStatus()
    return (program.standardOutput, program.standardError)
  }

  @Test func `Tab completes users, events and requests`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      let cases: [(words: [String], offers: [String], without: [String])] = [
        (["friends", "remove", ""], ["ben", "cleo", "dev", "emre", "hana"], ["goran", "ana"]),
        (["friends", "remove", "B"], ["Ben"], []),
        (["requests", "accept", ""], ["fatima", "goran"], ["ben"]),
        (["requests", "decline", "f"], ["fatima"], ["goran"]),
        (["requests", "cancel", ""], ["ines", "jonas"], ["fatima"]),
        (["requests", "send", ""], ["lina"], ["ben"]),
        (["requests", "send", "lin"], ["lina"], []),
        (["unblock", ""], ["kai"], ["ben"]),
        (["block", "go"], ["goran"], []),
        (["events", "show", "open"], ["open studio all day"], []),
        (["events", "show", "\"Open st"], ["Open studio all day"], []),
        (["events", "show", "Open\\ st"], ["Open studio all day"], []),
        (["events", "show", "0000"], ["000006"], []),
        (["events", "edit", ""], ["Climbing at the old quarry"], ["Open studio all day"]),
        (["answer", ""], ["Open studio all day"], ["Climbing at the old quarry"]),
        (["answer", "climbing", "g"], ["going"], []),
        (["events", "invite", "climbing", "ben", ""], ["hana"], []),
        (["events", "create", "Pasta", "--invite", "ben,"], ["ben,cleo"], ["ben,ben"]),
        (["report", "user", "ben", "--reason", "sp"], ["spam"], []),
        (["preferences", "--off", "event-u"], ["event-updated"], []),
      ]
      for (words, wanted, unwanted) in cases {
        let (found, errors) = try await offers(words, in: demo)
        #expect(Set(found).isSuperset(of: wanted) && Set(found).isDisjoint(with: unwanted), "\(words): \(found)")
        #expect(errors.isEmpty, "\(words): \(errors)")
      }
      // Guests of the event before, for its hosts.
      let title = "Climbing at the old quarry"
      let guests = try await demo.say("events guests climbing --json", as: "ana")
      let (found, _) = try await offers(["events", "withdraw", "\"\(title)\"", ""], in: demo)
      #expect(!found.isEmpty)
      for name in found { #expect(guests.contains("\"username\": \"\(name)\""), "\(name)") }
      // Another profile has other friends.
      let others = try await offers(["friends", "remove", "--profile", "ben", ""], in: demo).words
      #expect(others.contains("lina") && !others.contains("emre"), "\(others)")
    }
  }

  /// Titles that a shell would run, expand or split, with what they complete to and how its beginning is typed.
  private static let hostile = [
    ("Rent $(touch ran) $HOME", "Rent", "Re"), ("Tax: `touch ran`; touch ran", "Tax:", "Ta"),
    (#"It's "Ben's" \ night"#, #"It's "Ben's" \ night"#, "It"),
    ("a\\'b & touch ran | touch ran", "a\\'b & touch ran | touch ran", "a"), ("x*?[a]{b}", "x*?[a]{b}", "x"),
    ("Hey!! #1 (touch ran) <ran >ran", "Hey!! #1 (touch ran) <ran >ran", "He"), ("1=2:3", "1=2:3", "1"),
  ]

  @Test func `a title is never run by the shell, and completes to itself`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      for (title, _, _) in Self.hostile {
        let created = try await demo.ctl(["events", "create", title, "tomorrow 19:00"], as: "ana")
        #expect(created.status == 0, "\(created.errors)")
      }
      let (found, errors) = try await offers(["events", "show", ""], in: demo)
      #expect(Set(found).isSuperset(of: Self.hostile.map { $0.1 }) && errors.isEmpty, "\(found) \(errors)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: demo.home.path).allSatisfy { $0 != "ran" })

      // In a terminal, with the key itself: bash quotes what it inserts.
      for (title, _, beginning) in Self.hostile {
        for quote in ["", "\""] {
          let output = try await typing("musterctl events show \(quote)\(beginning)\t", in: demo)
          #expect(output.contains("\(title)\nWhen"), "\(output)")
        }
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: demo.home.path).allSatisfy { $0 != "ran" })
    }
  }

  /// The screen of an interactive bash with the completions after a line.
  private func typing(_ line: String, in demo: Demo) async throws -> String {
    let folder = URL(filePath: Program.path("musterctl")).deletingLastPathComponent().path
    let more = ["PATH": "\(folder):/usr/bin:/bin", "PS1": "> ", "INPUTRC": "/dev/null", "NO_COLOR": "1"]
      .merging(Self.patience) { $1 }
    let terminal = try PseudoTerminal(
      "/bin/bash", ["--norc", "--noprofile", "-i"], environment: demo.environment(as: "ana").merging(more) { $1 },
      columns: 200, in: demo.home.path)
    defer { terminal.kill() }
    try await terminal.waitForOutput("> ")
    terminal.type("eval \"$(musterctl --generate-completion-script bash)\"; echo read''y\n")
    try await terminal.waitForOutput("ready")
    // bash reads the end of the line after it has handled the key.
    terminal.type("\(line)\n")
    terminal.type("exit\n")
    _ = try await terminal.exitStatus()
    return terminal.output
  }

  @Test func `titles that no word can show, and equal ones, complete to the ends of ids`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      for title in ["Quiz", "Quiz", "Line", "Option", "Home", "Money"] {
        _ = try await demo.say("events create \(title) 'tomorrow 19:00'", as: "ana")
      }
      try await demo.execute(
        """
        UPDATE events SET title = E'Quiz\\nlines' WHERE title = 'Line';
        UPDATE events SET title = '$(touch ran)' WHERE title = 'Money';
        UPDATE events SET title = '-rf' WHERE title = 'Option';
        UPDATE events SET title = '~root' WHERE title = 'Home';
        UPDATE user_stamps SET events = clock_timestamp();
        """)
      let (found, _) = try await offers(["events", "show", ""], in: demo)
      let ids = found.filter { $0.wholeMatch(of: /[0-9a-f]{6,12}/) != nil }
      #expect(
        ids.count == 6 && found.allSatisfy { !["Quiz", "lines", "-rf", "~root", ""].contains($0) }, "\(found)")
      for id in ids { #expect(try await demo.ctl(["events", "show", id], as: "ana").status == 0) }
    }
  }

  @Test func `without a login, a service or an answer, Tab is silent and soon done`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      func isSilent(_ words: [String], _ profile: String, _ environment: [String: String] = [:]) async throws {
        let (found, errors) = try await offers(words, in: demo, as: profile, environment: environment)
        #expect(found.isEmpty && errors.isEmpty, "\(words): \(found) \(errors)")
      }
      try await isSilent(["events", "show", ""], "cleo")
      try await isSilent(["events", "show", ""], "no such profile")
      try await isSilent(["events", "show", "--server", "ftp://x", ""], "ana")
      _ = try await demo.say("sync", as: "ben")
      let fresh = try await offers(["friends", "remove", ""], in: demo, as: "ben").words
      #expect(fresh.contains("ana"))
      // The service takes connections, and never responds.
      try await demo.pause {
        let start = ContinuousClock.now
        try await isSilent(["events", "show", ""], "ana")
        #expect(try await offers(["friends", "remove", ""], in: demo, as: "ben", environment: [:]).words == fresh)
        // A call takes 30 seconds until it gives up.
        #expect(start.duration(to: .now) < .seconds(20))
      }
      // A friend who is new since the copy was made.
      _ = try await demo.say("requests accept hana", as: "ben")
      #expect(try await offers(["friends", "remove", "h"], in: demo, as: "ben").words == ["hana"])
      try await demo.stop()
      try await isSilent(["events", "show", ""], "ana")
      #expect(try await offers(["friends", "remove", ""], in: demo, as: "ben").words == fresh)
      _ = try await demo.ctl(["logout"], as: "ben")
      try await isSilent(["friends", "remove", ""], "ben")
    }
  }

  @Test func `each shell gets words that it reads as they are`() {
    let candidate = Candidate(word: #"It's 5:00 \ $x"#, remark: "Fri\t1 May: 19:00")
    #expect(candidate.line(for: .bash) == #"'It'\''s 5:00 \ $x'"#)
    #expect(candidate.line(for: .zsh) == #"It's 5\:00 \\ $x:Fri 1 May: 19:00"#)
    #expect(candidate.line(for: .fish) == "It's 5:00 \\ $x\tFri 1 May: 19:00")
    for (text, part) in [
      ("", ""), ("-x", ""), ("~x", ""), ("=x", ""), ("$(x)", ""), ("a\nb", "a"), ("a \u{1B}[2J", "a"),
      ("a\u{202E}b", "a"),
      ("a $(x)", "a"), ("a`x`", "a"), ("喫茶店めぐり", "喫茶店めぐり"), ("a 'b' \"c\"", "a 'b' \"c\""),
    ] { #expect(Candidate.usablePart(of: text) == part) }
    #expect(candidate.completing("IT'S")?.word == #"IT'S 5:00 \ $x"#)
    #expect(Candidate(word: "Café").completing("cafe")?.word == "cafe")
    #expect(candidate.completing("5:00") == nil)
  }

  @Test func `words are read as the shell reads them`() {
    func typed(_ word: String) -> String { CompletionRequest(["musterctl", word], at: 1).typed }
    for (word, text) in [
      ("a\\ b", "a b"), ("\"a b", "a b"), ("'a \\b", "a \\b"), (#""a\"b\c""#, #"a"b\c"#), (#"It\'s"#, "It's"),
      ("a'b c'd", "ab cd"), ("", ""),
    ] { #expect(typed(word) == text, "\(word)") }
  }
}
