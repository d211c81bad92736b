import Foundation
import MusterKit
import TestSupport
import Testing

@testable import musterctl

/// The interface for scripts: exit statuses, streams and JSON.
@Suite struct ScriptTests {
  @Test func `every kind of failure has its exit status, and one line on stderr`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let cases: [(arguments: [String], status: Int32, text: String)] = [
        (["events", "show", "opera"], 1, "There is no event \"opera\"."),
        (["events", "show", UUID().uuidString], 1, "There is no such event."),
        (["requests", "send", "ben"], 1, "You are already friends."),
        (["requests", "send", "bne"], 1, "There is no user \"bne\"."),
        (["requests", "accept", "ben"], 1, "There is no friend request from \"ben\"."),
        (["answer", "climbing", "going"], 1, "You are a host of this event, not a guest."),
        (["events", "edit", "concert", "--title", "Rave"], 1, "Only the hosts of the event may do this."),
        (["events", "create", "Pasta", "tomorrow 19:00", "--invite", "goran"], 1, "You have no friend \"goran\"."),
        (["events", "create", String(repeating: "x", count: 201), "tomorrow 19:00"], 1, "title: "),
        (["events", "create", "Pasta", "someday"], 2, "\"someday\" is not a time"),
        (["events", "create", "Pasta", "tomorrow 19:00", "--zone", "Moon"], 2, "\"Moon\" is not a time zone"),
        (["events", "cancel", "climbing"], 2, "Use --yes."),
        (["events", "create", "Pasta", "2020-01-01 18:00"], 2, "in the past. Continue? There is no terminal to ask."),
        (["events", "edit", "climbing", "--time", "2020-01-01 18:00"], 2, "is in the past. Continue?"),
        (["events", "edit", "climbing"], 2, "Specify what to change."),
        (["whoami", "--server", "ftp://x"], 2, "is not the URL of a service"),
        (["whoami", "--profile", "../ben"], 2, "is not a valid profile name"),
      ]
      for (arguments, status, text) in cases {
        let result = try await demo.ctl(arguments, as: "ana")
        #expect(result.status == status && result.output.isEmpty, "\(arguments) \(result)")
        #expect(result.errors.hasPrefix("musterctl: ") && result.errors.contains(text), "\(result.errors)")
        #expect(result.errors.count { $0 == "\n" } == 1, "\(result.errors)")
      }
      for arguments in [["dance"], ["events", "--nope"], ["answer", "pasta", "yes"], ["events", "create", "Pasta"]] {
        let result = try await demo.ctl(arguments, as: "ana")
        #expect(result.status == 2 && result.output.isEmpty && result.errors.contains("Usage:"), "\(result)")
      }
      for arguments in [["--help"], ["events", "create", "--help"], ["--version"], ["help", "watch"]] {
        let result = try await demo.ctl(arguments, as: "ana")
        #expect(result.status == 0 && result.errors.isEmpty && !result.output.isEmpty)
      }
      #expect(try await demo.ctl(["events"], as: "ben").status == 3)
      let nowhere = try await demo.ctl(["watch", "--profile", "new"], as: "ana", environment: ["MUSTER_SERVER": ""])
      #expect(nowhere.status == 3 && nowhere.errors == "musterctl: You are not logged in. Use `musterctl login`.\n")
      let away = ["MUSTER_SERVER": "http://127.0.0.1:9"]
      let unreachable = try await demo.ctl(
        ["login", "ana", "--password-stdin"], as: "cleo", input: "x\n", environment: away)
      #expect(unreachable.status == 4 && unreachable.errors.contains("http://127.0.0.1:9 cannot be reached: "))
    }
  }

  @Test func `an ended session asks for a login`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let end = try await Program(
        Program.path("muster"), ["sessions", "end", "--user", "ana"], environment: ["DATABASE_URL": demo.databaseURL])
      #expect(try await end.exitStatus() == 0)
      try await eventually { try await demo.ctl(["events"], as: "ana").status == 3 }
      #expect(try await demo.ctl(["events"], as: "ana").errors.contains("Use `musterctl login`."))
      try await demo.logIn("ana")
      #expect(try await demo.ctl(["events"], as: "ana").status == 0)
    }
  }

  @Test func `an event in the past needs a yes`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let terminal = try demo.terminal("events create Pasta '2020-01-01 18:00'", as: "ana")
      try await terminal.waitForOutput("The start, Wed 1 Jan 2020 18:00, is in the past. Continue? [y/N] ")
      terminal.type("n\n")
      #expect(try await terminal.exitStatus() == 1)
      #expect(try await !demo.say("events --json", as: "ana").contains("2020-01-01"))
      #expect(try await demo.say("events create Pasta '2020-01-01 18:00' --yes", as: "ana").contains("1 Jan 2020"))
    }
  }

  @Test func `a cancelled event is never answered, and does not hide another`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      _ = try await demo.say("events create Quiz 'tomorrow 19:00' --invite ana", as: "ben")
      _ = try await demo.say("events cancel quiz --yes", as: "ben")
      let cancelled = try await demo.ctl(["answer", "quiz", "going"], as: "ana")
      #expect(cancelled.status == 1 && cancelled.errors == "musterctl: “Quiz” is cancelled and no longer changes.\n")
      _ = try await demo.say("events create 'Quiz night' 'tomorrow 20:00' --invite ana", as: "ben")
      #expect(try await demo.say("answer quiz going", as: "ana").hasPrefix("You are going to “Quiz night”, "))
      _ = try await demo.say("events create 'Pub quiz' 'tomorrow 21:00' --invite ana", as: "ben")
      let several = try await demo.ctl(["answer", "quiz", "maybe"], as: "ana")
      #expect(several.status == 1 && several.errors.contains("Quiz night") && several.errors.contains("Pub quiz"))
      #expect(several.errors.hasPrefix("musterctl: \"quiz\" matches several events:\n"))
      #expect(!several.errors.hasSuffix("  Quiz\n"))
    }
  }

  @Test func `names that mean several events list them`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let several = try await demo.ctl(["answer", "e", "going"], as: "ana")
      #expect(several.status == 1)
      let lines = several.errors.split(separator: "\n")
      #expect(lines.first == "musterctl: \"e\" matches several events:")
      #expect(lines.contains { $0.hasPrefix("  000006  ") && $0.hasSuffix("  House concert") }, "\(several.errors)")
      #expect(try await demo.say("events show 000006", as: "ana").hasPrefix("House concert\n"))
    }
  }

  @Test func `a mistyped word gets a suggestion`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let cases: [(arguments: [String], status: Int32, text: String)] = [
        (["evnts"], 2, "There is no command 'evnts'. Did you mean 'events'?"),
        (["events", "shw", "x"], 2, "There is no command 'events shw'. Did you mean 'events show'?"),
        (["events", "--jsn"], 2, "Did you mean '--json'?"), (["answer", "studio", "goin"], 2, "Did you mean 'going'?"),
        (["events", "links", "create", "climbing", "--kind", "vew"], 2, "Did you mean 'view'?"),
        (["events", "edit", "climbing", "--clear", "capcity"], 2, "Did you mean 'capacity'?"),
        (["privacy", "--requests-from", "everone"], 2, "Did you mean 'everyone'?"),
        (["report", "user", "ben", "--reason", "harasment"], 2, "Did you mean 'harassment'?"),
        (["preferences", "--off", "event-update"], 2, "Did you mean event-updated"),
        (["preferences", "--on", "dance"], 2, "`musterctl preferences` lists them."),
        (
          ["events", "show", "climbng"], 1, "There is no event \"climbng\". Did you mean “Climbing at the old quarry”?"
        ),
        (["friends", "remove", "bne"], 1, "You have no friend \"bne\". Did you mean ben?"),
        (["requests", "accept", "fatma"], 1, "There is no friend request from \"fatma\". Did you mean fatima?"),
        (["requests", "cancel", "jonsa"], 1, "There is no friend request to \"jonsa\". Did you mean jonas?"),
        (["unblock", "kay"], 1, "You have not blocked \"kay\". Did you mean kai?"),
        (["events", "create", "Pasta", "32 May"], 2, "There is no 32 May. Write a day from 1 to 31."),
      ]
      for (arguments, status, text) in cases {
        let result = try await demo.ctl(arguments, as: "ana")
        #expect(result.status == status && result.output.isEmpty && result.errors.contains(text), "\(result)")
        let json = try await demo.ctl(arguments + ["--json"], as: "ana")
        let document = try JSONDecoder.muster().decode(JSONValue.self, from: Data(json.errors.utf8))
        #expect(json.status == status && document["detail"]?.string?.contains(text) == true, "\(json)")
      }
    }
  }

  @Test func `with --json, an ambiguous name has candidates`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      func candidates(_ arguments: String...) async throws -> [[String: JSONValue]] {
        let result = try await demo.ctl(arguments + ["--json"], as: "ana")
        let document = try JSONDecoder.muster().decode(JSONValue.self, from: Data(result.errors.utf8))
        #expect(result.status == 1 && result.output.isEmpty && document["type"] == .string("refused"), "\(result)")
        #expect(document["detail"]?.string?.isEmpty == false)
        guard case .array(let items) = document["candidates"] else { return [] }
        return items.map { if case .object(let members) = $0 { members } else { [:] } }
      }
      for title in ["Quiz night", "Pub quiz"] {
        _ = try await demo.say("events create '\(title)' 'tomorrow 19:00'", as: "ana")
      }
      let events = try await candidates("events", "cancel", "quiz")
      #expect(Set(events.compactMap { $0["title"]?.string }) == ["Quiz night", "Pub quiz"])
      for event in events {
        #expect(Set(event.keys) == ["id", "title", "startTime"])
        // The script continues with an id.
        let id = try #require(event["id"]?.string)
        let shown = try await demo.say("events show \(id) --json", as: "ana")
        #expect(shown.contains(try #require(event["startTime"]?.string)))
      }
      let friends = try await candidates("friends", "remove", "bne")
      #expect(friends.map { $0["username"] } == [.string("ben")])
      #expect(friends.allSatisfy { Set($0.keys) == ["id", "username", "displayName"] })
      #expect(try await candidates("requests", "send", "okafor").contains { $0["username"] == .string("ben") })
      let requests = try await candidates("requests", "accept", "fatma")
      #expect(requests.map { $0["sender"]?["username"] } == [.string("fatima")] && requests[0]["id"] != nil)

      #expect(try await candidates("events", "show", "nothing like it").isEmpty)
    }
  }

  @Test func `--json prints the service's responses`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      func json(_ line: String, as user: String = "ana") async throws -> JSONValue {
        let text = try await demo.say("\(line) --json", as: user)
        return try JSONDecoder.muster().decode(JSONValue.self, from: Data(text.utf8))
      }
      func members(_ value: JSONValue?) -> Set<String> {
        guard case .object(let members) = value else { return [] }
        return Set(members.keys)
      }
      func items(_ value: JSONValue) -> [JSONValue] {
        guard case .array(let items) = value["items"] else { return [] }
        return items
      }
      for line in ["friends", "requests", "requests list --sent", "blocks", "events", "events past"] {
        let list = try await json(line)
        #expect(members(list).isSuperset(of: ["items", "nextCursor", "timestamp"]) && list["nextCursor"] == .null)
      }
      let events = try await json("events")
      let studio = try #require(items(events).first { $0["title"] == .string("Open studio all day") })
      // Null members stay, as the service sends them.
      #expect(studio["capacity"] == .null && events["timestamp"]?.string?.contains(".") == true)
      #expect(try await json("events show studio")["participants"] != nil)
      #expect(try await json("whoami")["email"] == .string("ana@demo.example"))
      #expect(try await json("inbox")["unread"] != nil)
      #expect(try await json("answer studio maybe")["myStatus"] == .string("maybe"))
      #expect(try await json("friends remove emre") == .object([:]))
      #expect(try await json("find ben")["items"] != nil)
      let coffee = try await json("events create Coffee --in '2 hours' --for 45 --note 'Bring cake.'")
      let start = try #require(try RFC3339.date(from: coffee["startTime"]?.string ?? ""))
      #expect((7140...7260).contains(start.timeIntervalSinceNow) && coffee["note"] == .string("Bring cake."))
      #expect(try RFC3339.date(from: coffee["endTime"]?.string ?? "") == start.addingTimeInterval(2700))
      let login = try await demo.ctl(
        ["login", "ana", "--password-stdin", "--json"], as: "ana", input: Demo.password + "\n")
      #expect(login.output.contains(#""pendingEmail": null"#))
      #expect(login.output.contains(#""username": "ana""#) && !login.output.contains("oken"))

      // Two pages become one document.
      let earlier = items(try await json("blocks")).count
      for number in 1...101 {
        try await demo.execute(
          """
          INSERT INTO users (id, username, email, display_name, password_hash)
            VALUES (gen_random_uuid(), 'extra\(number)', 'extra\(number)@example.com', 'Extra', NULL)
          """)
      }
      try await demo.execute(
        """
        INSERT INTO blocks (blocker_id, blocked_id, created_at)
          SELECT ana.id, extra.id, now() FROM users ana, users extra
          WHERE ana.username = 'ana' AND extra.username LIKE 'extra%'
        """)
      let blocks = try await json("blocks")
      #expect(items(blocks).count == earlier + 101 && blocks["nextCursor"] == .null)

      let refused = try await demo.ctl(["requests", "send", "ben", "--json"], as: "ana")
      #expect(refused.status == 1 && refused.output.isEmpty)
      let problem = try JSONDecoder.muster().decode(Problem.self, from: Data(refused.errors.utf8))
      #expect(problem.type == .alreadyFriends && problem.status == 409)
      // Wrong usage, found by the parser and by the command.
      for arguments in [["dance"], ["answer", "pasta", "yes"], ["events", "edit", "x", "--for", "1", "--until", "2"]] {
        let wrong = try await demo.ctl(arguments + ["--json"], as: "ana")
        let document = try JSONDecoder.muster().decode(JSONValue.self, from: Data(wrong.errors.utf8))
        #expect(wrong.status == 2 && wrong.output.isEmpty && document["type"] == .string("usage"), "\(wrong)")
        #expect(document["detail"]?.string?.isEmpty == false)
      }
      #expect(try await demo.ctl(["events", "--help", "--json"], as: "ana").output.hasPrefix("OVERVIEW"))
      let missing = try await demo.ctl(["events", "--json"], as: "cleo")
      #expect(missing.errors.contains(#""type": "not-logged-in""#))
    }
  }

  @Test func `a reader that stops early is not an error`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      // The reader is gone before the program begins to write.
      let line = """
        mkfifo gone
        { cat gone >/dev/null; "$0" events --json; echo "status $?" >&2; } | { exec <&-; echo now >gone; }
        """
      let program = try await Program(
        "/bin/sh", ["-c", line, Program.path("musterctl")], environment: demo.environment(as: "ana"), in: demo.home.path
      )
      #expect(try await program.exitStatus() == 0)
      // Ended by SIGPIPE, as other programs are. If the caller ignores the signal, so does the program.
      #expect(["status 141\n", "status 0\n"].contains(program.standardError), "\(program.standardError)")
    }
  }

  @Test func `completion scripts name the commands`() async throws {
    for shell in ["bash", "zsh", "fish"] {
      let program = try await Program(Program.path("musterctl"), ["--generate-completion-script", shell])
      #expect(try await program.exitStatus() == 0)
      for command in [
        "requests", "watch", "withdraw", "password-stdin", "answer-for", "approve", "remind", "duplicate", "hosts",
        "links", "calendar", "join", "plus-ones",
      ] {
        #expect(program.standardOutput.contains(command), "\(shell): \(command)")
      }
    }
    let check = try await Program(
      "/bin/sh",
      [
        "-c", #"command -v bash >/dev/null || exit 0; "$0" --generate-completion-script bash | bash -n"#,
        Program.path("musterctl"),
      ])
    #expect(try await check.exitStatus() == 0, "\(check.standardError)")
  }

  @Test func `the version is that of the service`() async throws {
    let document = try String(
      contentsOf: Program.checkout.appending(path: "Sources/App/HTTP/openapi.yaml"), encoding: .utf8)
    let version = try #require(document.firstMatch(of: /\n  version: ([0-9.]+)\n/)?.1)
    let program = try await Program(Program.path("musterctl"), ["--version"])
    #expect(try await program.exitStatus() == 0)
    #expect(program.standardOutput == "\(version)\n")
  }
}
