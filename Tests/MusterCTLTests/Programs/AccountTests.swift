import Foundation
import MusterKit
import TestSupport
import Testing

@testable import musterctl

/// Profile, picture, password, sessions, devices, preferences, reports and export.
@Suite struct AccountTests {
  private func json(_ line: String, in demo: Demo, as user: String = "ana") async throws -> JSONValue {
    let text = try await demo.say("\(line) --json", as: user)
    return try JSONDecoder.muster().decode(JSONValue.self, from: Data(text.utf8))
  }

  /// Expects that a command fails with one line that contains a text.
  private func expectFailure(
    _ arguments: [String], _ status: Int32, _ text: String, in demo: Demo, input: String = ""
  ) async throws {
    let result = try await demo.ctl(arguments, as: "ana", input: input)
    #expect(result.status == status && result.output.isEmpty, "\(arguments) \(result)")
    #expect(result.errors.hasPrefix("musterctl: ") && result.errors.contains(text), "\(arguments) \(result.errors)")
    #expect(result.errors.count { $0 == "\n" } == 1, "\(result.errors)")
  }

  @Test func `the profile is shown and changed`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      let shown = try await demo.say("profile", as: "ana")
      for line in ["Username ", "Name ", "E-mail ", "Log in with ", "Friend requests from  everyone\n", "Picture "] {
        #expect(shown.contains("\(line)"), "\(shown)")
      }
      #expect(
        try await demo.say("profile edit --name 'Ana D.' --bio 'Climbs.'", as: "ana")
          == "Changed your profile: name: Ana Duarte → Ana D.; the text about you.\n")
      #expect(try await json("profile edit --clear bio", in: demo)["bio"] == .null)
      #expect(try await demo.say("profile edit --name 'Ana D.'", as: "ana") == "Nothing has changed.\n")
      #expect(try await demo.say("profile edit --username ana.d", as: "ana").contains("username: ana → ana.d"))
      let other = try await demo.say("profile of ana.d", as: "ben")
      #expect(other.contains(/Name +Ana D\.\n/) && other.contains(/You two +friends\n/), "\(other)")
      #expect(try await json("profile of ana.d", in: demo, as: "ben")["friendship"] == .string("friends"))

      try await expectFailure(["profile", "edit"], 2, "Specify what to change.", in: demo)
      try await expectFailure(["profile", "edit", "--username", "ben"], 1, "This username is taken.", in: demo)
      try await expectFailure(["profile", "edit", "--name", ""], 1, "name: ", in: demo)
      try await expectFailure(["profile", "of", "bbb"], 1, "There is no user \"bbb\".", in: demo)
      for arguments in [["--bio", "x", "--clear", "bio"], ["--name", "x", "--code"]] {
        #expect(try await demo.ctl(["profile", "edit"] + arguments, as: "ana").status == 2)
      }
      // A new address needs proof.
      let email = ["profile", "edit", "--email", "ana@example.org"]
      try await expectFailure(email, 2, "There is no terminal to ask for the password.", in: demo)
      try await expectFailure(email + ["--password-stdin"], 1, "current password", in: demo, input: "no\n")
      let moved = try await demo.ctl(email + ["--password-stdin"], as: "ana", input: Demo.password + "\n")
      #expect(moved.output == "A mail is on its way to ana@example.org. Follow its link to make the address yours.\n")
      #expect(try await demo.say("profile", as: "ana").contains("ana@example.org (not verified)"))
    }
  }

  @Test func `a picture comes from a file or from stdin`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let seed = Program.checkout.appending(path: "Seeds/pictures/ben.jpg")
      let before = try await demo.say("picture", as: "ana")
      let set = try await demo.say("picture set '\(seed.path)'", as: "ana")
      #expect(set.hasPrefix("Your picture is set: http") && !set.hasSuffix(before), "\(set)")
      #expect(set.hasSuffix(try await demo.say("picture show", as: "ana")))
      #expect(try await demo.say("picture remove --yes", as: "ana") == "You have no picture now.\n")
      let none = try await demo.ctl(["picture"], as: "ana")
      #expect(none.status == 0 && none.output.isEmpty && none.errors.contains("`musterctl picture set FILE`"))
      // A program cannot send bytes through the tests' shell.
      let pipe = try await Program(
        "/bin/sh", ["-c", #""$0" picture set - --json <"$1""#, Program.path("musterctl"), seed.path],
        environment: demo.environment(as: "ana"), in: demo.home.path)
      #expect(try await pipe.exitStatus() == 0, "\(pipe.standardError)")
      #expect(pipe.standardOutput.contains("\"pictureUrl\": \"http"), "\(pipe.standardOutput)")

      let text = demo.home.appending(path: "notes.txt")
      try Data("This is no picture.".utf8).write(to: text)
      try await expectFailure(
        ["picture", "set", "notes.txt"], 1, "\"notes.txt\" cannot be read as a picture.", in: demo)
      let problem = try await demo.ctl(["picture", "set", "notes.txt", "--json"], as: "ana")
      #expect(problem.errors.contains(#""type": "unsupported-media-type""#), "\(problem.errors)")
      try Data(count: 2 << 20 + 1).write(to: text)
      try await expectFailure(["picture", "set", "notes.txt"], 1, "has more than 2 MiB.", in: demo)
      try await expectFailure(["picture", "set", "nothing.jpg"], 1, "There is no file \"nothing.jpg\".", in: demo)
      try await expectFailure(["picture", "set", "."], 1, "is a folder.", in: demo)
      try await expectFailure(["picture", "set", "-"], 1, "The picture on stdin is empty.", in: demo)
      try await expectFailure(["picture", "remove"], 2, "Use --yes.", in: demo)
    }
  }

  @Test func `a password is asked for, or read from stdin, and never an argument`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let other = try await demo.ctl(
        ["login", "ana", "--password-stdin"], as: "phone", input: Demo.password + "\n")
      #expect(other.status == 0)
      let terminal = try demo.terminal("password", as: "ana")
      for (question, answer) in [
        ("Current password: ", Demo.password), ("New password: ", "a long evening"), ("Again: ", "a long evening"),
      ] {
        try await terminal.waitForOutput(question)
        #expect(!terminal.echoes)
        terminal.type(answer + "\n")
      }
      #expect(try await terminal.exitStatus() == 0, "\(terminal.output)")
      #expect(terminal.output.hasSuffix("Your password is changed. Your other sessions have ended.\n"))
      #expect(!terminal.output.contains("evening"))
      #expect(try await demo.ctl(["whoami"], as: "ana").status == 0)
      try await eventually { try await demo.ctl(["whoami"], as: "phone").status == 3 }

      func change(_ input: String, _ options: String...) async throws -> (status: Int32, output: String, errors: String)
      {
        try await demo.ctl(["password", "--password-stdin"] + options, as: "ana", input: input)
      }
      let wrong = try await change("not this\nanother evening\n")
      #expect(wrong.status == 1 && wrong.errors.contains("current password"), "\(wrong)")
      let weak = try await change("a long evening\nx\n")
      #expect(weak.status == 1 && weak.errors.hasPrefix("musterctl: new password: "), "\(weak)")
      #expect(try await change("a long evening\n").status == 2)
      let json = try await change("a long evening\nanother evening\n", "--json")
      #expect(json.status == 0 && json.output == "{}\n")
      try await expectFailure(["password"], 2, "Use --password-stdin", in: demo)
      #expect(try await demo.ctl(["password", "secret"], as: "ana").status == 2)

      // Without a password, a code takes its place.
      try await demo.execute("UPDATE users SET password_hash = NULL WHERE username = 'ana'")
      try await expectFailure(["password"], 1, "Use --code to confirm with a mailed code.", in: demo)
      let code = try await demo.ctl(
        ["password", "--code", "--password-stdin"], as: "ana", input: "000000\nnew evening\n")
      #expect(code.status == 1 && code.errors.contains("A code is on its way to ana@demo.example."), "\(code)")
      #expect(code.errors.contains("This code is wrong"), "\(code)")
      try await demo.execute("UPDATE users SET email_verified_at = NULL WHERE username = 'ana'")
      try await expectFailure(["password", "--code"], 1, "verified address", in: demo)
    }
  }

  @Test func `sessions are listed, and ended after a question`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      for profile in ["phone", "tablet", "desk"] {
        _ = try await demo.ctl(["login", "ana", "--password-stdin"], as: profile, input: Demo.password + "\n")
      }
      let table = try await demo.say("sessions", as: "ana").split(separator: "\n").map(String.init)
      #expect(table.count == 5 && table.count { $0.hasSuffix("this session") } == 1, "\(table)")
      #expect(table.last?.hasSuffix("this session") == true, "\(table)")
      let ids = table.dropFirst().map { String($0.prefix { $0 != " " }) }
      let terminal = try demo.terminal("sessions end \(ids[0])", as: "ana")
      try await terminal.waitForOutput("End the session “musterctl on ")
      terminal.type("n\n")
      #expect(try await terminal.exitStatus() == 1 && terminal.output.contains("Nothing was ended."))
      try await expectFailure(["sessions", "end", ids[0]], 2, "Use --yes.", in: demo)
      #expect(try await demo.ctl(["whoami"], as: "desk").status == 0)
      #expect(try await demo.say("sessions end \(ids[0]) --yes", as: "ana").hasPrefix("Ended the session “musterctl"))
      try await eventually { try await demo.ctl(["whoami"], as: "desk").status == 3 }

      try await expectFailure(["sessions", "end", ids[3], "--yes"], 1, "Use `musterctl logout`.", in: demo)
      try await expectFailure(["sessions", "end", "nothing", "--yes"], 1, "`musterctl sessions` lists them", in: demo)
      let name = try #require(table[1].firstMatch(of: /musterctl on \S+/)?.0)
      let several = try await demo.ctl(["sessions", "end", String(name), "--json"], as: "ana")
      let document = try JSONDecoder.muster().decode(JSONValue.self, from: Data(several.errors.utf8))
      guard case .array(let candidates) = document["candidates"] else { throw Unexpected("\(several)") }
      #expect(several.status == 1 && candidates.count == 3 && candidates.allSatisfy { $0["lastUsedAt"]?.string != nil })

      #expect(try await demo.say("sessions end --others --yes", as: "ana") == "Ended 2 other sessions.\n")
      #expect(try await demo.say("sessions end --others", as: "ana") == "You have no other sessions.\n")
      #expect(try await demo.say("sessions end --others --json", as: "ana") == "{}\n")
      for profile in ["phone", "tablet"] {
        try await eventually { try await demo.ctl(["whoami"], as: profile).status == 3 }
      }
      for arguments in [[], ["x", "--others"]] {
        #expect(try await demo.ctl(["sessions", "end"] + arguments, as: "ana").status == 2)
      }
      #expect(try await json("sessions", in: demo)["items"] != nil)
    }
  }

  @Test func `devices are added, listed and removed`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let none = try await demo.ctl(["devices"], as: "ana")
      #expect(none.status == 0 && none.errors == "No device gets your notifications.\n", "\(none)")
      let url = "https://hooks.example.com/ana"
      let added = try await demo.say("devices add \(url) --name 'Home server'", as: "ana")
      #expect(added.contains("Home server, ") && added.contains(/Secret +\S{20,}\n/), "\(added)")
      #expect(try await demo.say("devices add \(url) --name Server", as: "ana").contains(/Secret +as before\n/))
      #expect(try await json("devices add \(url) --new-secret", in: demo)["secret"]?.string != nil)
      _ = try await demo.say("devices add \(url)/2 --name Garden", as: "ana")
      let table = try await demo.say("devices", as: "ana")
      #expect(table.contains(/webhook +Garden +.*this session\n/), "\(table)")
      try await expectFailure(["devices", "add", "http://localhost"], 1, "url: ", in: demo)
      try await expectFailure(["devices", "remove", "Garden"], 2, "Use --yes.", in: demo)
      try await expectFailure(["devices", "remove", "Cellar", "--yes"], 1, "`musterctl devices` lists them", in: demo)
      #expect(try await demo.say("devices remove garden --yes", as: "ana") == "Removed webhook “Garden”.\n")
      let id = try #require(try await demo.say("devices", as: "ana").firstMatch(of: /([0-9a-f]{6,}) +webhook/)?.1)
      let terminal = try demo.terminal("devices remove \(id)", as: "ana")
      try await terminal.waitForOutput("Remove webhook “")
      terminal.type("y\n")
      #expect(try await terminal.exitStatus() == 0)
      #expect(try await demo.ctl(["devices"], as: "ana").output.isEmpty)
    }
  }

  @Test func `types of notifications are turned on and off`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let before = try await demo.say("preferences", as: "ana")
      #expect(before.contains(/event-updated +on\n/) && !before.contains("session-revoked"), "\(before)")
      let after = try await demo.say("preferences --off event-updated --off guest-answered", as: "ana")
      #expect(after.contains(/event-updated +off\n/) && after.contains(/guest-answered +off\n/), "\(after)")
      #expect(try await demo.say("preferences", as: "ana") == after)
      let mixed = try await json("preferences --on event-updated --off friend-request", in: demo)
      #expect(mixed["event-updated"] == .bool(true) && mixed["friend-request"] == .bool(false))
      #expect(mixed["guest-answered"] == .bool(false))
      try await expectFailure(["preferences", "--off", "session-revoked"], 1, "are always sent.", in: demo)
      try await expectFailure(["preferences", "--off", "timestamp"], 2, "There is no type of notification", in: demo)
      #expect(
        try await demo.ctl(["preferences", "--on", "event-updated", "--off", "event-updated"], as: "ana").status == 2)
    }
  }

  @Test func `users, events and visitors are reported`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let user = try await demo.say("report user goran --reason spam --text 'Sells tickets.'", as: "ana")
      #expect(user == "Reported Горан Илић (goran) to the operators.\n", "\(user)")
      // Blocked users do not show up in searches.
      #expect(try await demo.say("report user kai --reason harassment", as: "ana").contains("(kai)"))
      let event = try await json("report event studio --reason other", in: demo)
      #expect(event["reason"] == .string("other") && event["eventId"]?.string != nil)
      let id = UUID().uuidString.lowercased()
      #expect(try await json("report user \(id) --reason hate", in: demo)["userId"] == .string(id))
      #expect(try await demo.say("report guest climbing ben --reason nudity", as: "ana").contains("(ben)"))
      try await expectFailure(["report", "user", "bbb", "--reason", "spam"], 1, "There is no user \"bbb\".", in: demo)
      try await expectFailure(["report", "event", "opera", "--reason", "spam"], 1, "There is no event", in: demo)
      for arguments in [["user", "ben"], ["user", "ben", "--reason", "boredom"], ["ben"]] {
        #expect(try await demo.ctl(["report"] + arguments, as: "ana").status == 2)
      }
    }
  }

  @Test func `an export never replaces a file silently`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let file = demo.home.appending(path: "all.json")
      let saved = try await demo.say("export all.json", as: "ana")
      let data = try Data(contentsOf: file)
      #expect(saved == "Saved your data in \"all.json\": \(data.count) bytes.\n")
      let document = try JSONDecoder.muster().decode(JSONValue.self, from: data)
      #expect(document["profile"]?["username"] == .string("ana"))
      let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
      #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)

      try Data("mine".utf8).write(to: file)
      try await expectFailure(["export", "all.json"], 2, "Use --yes.", in: demo)
      let terminal = try demo.terminal("export all.json", as: "ana")
      try await terminal.waitForOutput("Replace \"all.json\"? [y/N] ")
      terminal.type("\n")
      #expect(try await terminal.exitStatus() == 1)
      #expect(try Data(contentsOf: file) == Data("mine".utf8))
      #expect(try await demo.say("export all.json --yes --json", as: "ana") == "{}\n")
      #expect(try Data(contentsOf: file).count > 1000)
      let output = try await demo.say("export -", as: "ana")
      #expect(try JSONDecoder.muster().decode(JSONValue.self, from: Data(output.utf8))["events"] != nil)

      try await expectFailure(["export", "nowhere/all.json"], 1, "does not exist. Create it first.", in: demo)
      try await expectFailure(["export", "."], 1, "is not a file. Use another name.", in: demo)
      try await expectFailure(["export", "/dev/null", "--yes"], 1, "is not a file. Use another name.", in: demo)
      // A file that appears while the export runs is kept.
      let late = try OutputFile(at: demo.home.appending(path: "late.json").path)
      try Data("mine".utf8).write(to: demo.home.appending(path: "late.json"))
      #expect(throws: Failure.self) { try late.write(Data("theirs".utf8)) }
      #expect(try Data(contentsOf: demo.home.appending(path: "late.json")) == Data("mine".utf8))
    }
  }

  @Test func `commands of the account need a login, and explain themselves`() async throws {
    try await Demo.run { demo in
      let commands = [
        "profile", "profile edit --name x", "picture", "picture remove --yes", "password", "sessions",
        "sessions end --others --yes", "devices", "devices add https://hooks.example.com/x", "preferences",
        "report user ben --reason spam", "export -",
      ]
      for line in commands {
        let result = try await demo.ctl(line.shellWords, as: "ana")
        #expect(result.status == 3 && result.output.isEmpty, "\(line) \(result)")
        #expect(result.errors.hasSuffix("Use `musterctl login`.\n"), "\(line) \(result)")
        let words = line.shellWords.prefix { !$0.hasPrefix("-") && !$0.contains("/") && $0 != "ben" }
        let help = try await demo.ctl(words + ["--help"], as: "ana")
        #expect(help.status == 0 && help.output.contains("OVERVIEW: "), "\(help)")
        #expect(help.output.contains("--json") || help.output.contains("SUBCOMMANDS:"), "\(help)")
      }
    }
  }
}
