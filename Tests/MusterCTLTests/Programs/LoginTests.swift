import Foundation
import TestSupport
import Testing

@Suite struct LoginTests {
  @Test func `the password is asked for and not shown`() async throws {
    try await Demo.run { demo in
      let terminal = try demo.terminal("login", as: "ana")
      try await terminal.waitForOutput("Username or e-mail: ")
      #expect(terminal.echoes)
      terminal.type("ana\n")
      try await terminal.waitForOutput("Password: ")
      #expect(!terminal.echoes)
      // With a typing error, and a line that is erased as a whole.
      terminal.type("wrong\u{15}plans-with-friendß\u{7F}s\n")
      #expect(try await terminal.exitStatus() == 0)
      #expect(
        terminal.output == "Username or e-mail: ana\nPassword: \nLogged in as Ana Duarte (ana) at \(demo.url).\n")

      let wrong = try demo.terminal("login ana", as: "ben")
      try await wrong.waitForOutput("Password: ")
      wrong.type("not this\n")
      #expect(try await wrong.exitStatus() == 1)
      #expect(wrong.output.hasSuffix("musterctl: There is no account with this login and password.\n"))
      #expect(try await demo.ctl(["whoami"], as: "ben").status == 3)
    }
  }

  @Test func `Ctrl-C at a question ends the program`() async throws {
    try await Demo.run { demo in
      for arguments in ["login ana", "register rosa rosa@example.com"] {
        let terminal = try demo.terminal(arguments, as: "ana")
        try await terminal.waitForOutput("Password: ")
        terminal.type("half a pass\u{3}")
        #expect(try await terminal.exitStatus() == 130)
        #expect(!terminal.output.contains("half"))
      }
      let login = try demo.terminal("login", as: "ana")
      try await login.waitForOutput("e-mail: ")
      login.type("\u{3}")
      #expect(try await login.exitStatus() == -SIGINT)
    }
  }

  @Test func `logging out without the service ends the session here, and says so`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      try await demo.stop()
      let logout = try await demo.ctl(["logout"], as: "ana")
      #expect(logout.status == 4 && logout.output.isEmpty)
      #expect(logout.errors.hasPrefix("musterctl: You are logged out on this machine: "), "\(logout.errors)")
      #expect(logout.errors.contains("\(demo.url) did not confirm it"))
      #expect(try await demo.ctl(["logout"], as: "ana").status == 3)
      let json = try await demo.ctl(["logout", "--json"], as: "ben")
      #expect(json.status == 4 && json.errors.contains(#""type": "unavailable""#))
    }
  }

  @Test func `a new password is asked for twice`() async throws {
    try await Demo.run { demo in
      for (second, status) in [("another evening", Int32(2)), ("a long evening", 0)] {
        let terminal = try demo.terminal("register rosa rosa@example.com", as: "rosa")
        try await terminal.waitForOutput("Password: ")
        terminal.type("a long evening\n")
        try await terminal.waitForOutput("Again: ")
        terminal.type("\(second)\n")
        #expect(try await terminal.exitStatus() == status, "\(terminal.output)")
      }
      #expect(try await demo.say("whoami", as: "rosa").contains("Username  rosa\n"))
      let quiet = ["register", "theo", "theo@example.com", "--password-stdin"]
      #expect(try await demo.ctl(quiet, as: "theo", input: "a long evening\n").status == 0)
    }
  }

  @Test func `a mailed code logs in`() async throws {
    try await Demo.run { demo in
      let folder = "/tmp/musterctl-dev-\(UUID().uuidString.prefix(8))"
      defer { try? FileManager.default.removeItem(atPath: folder) }
      // Its log has the mails.
      let dev = try await Program(
        Program.path("muster"), ["dev", "--data", folder, "--port", "\(Int.random(in: 20_000..<30_000))"],
        environment: ["MUSTER_SCRYPT": "ln=4,r=8,p=1", "MUSTER_METRICS_LISTEN": "off"], in: "/tmp")
      defer { dev.signal(SIGKILL) }
      try await dev.waitForOutput("Ctrl-C stops it")
      let url = try #require(dev.standardOutput.firstMatch(of: /Muster is up at (\S+)/)?.1)
      let service = ["MUSTER_SERVER": String(url)]

      let terminal = try demo.terminal("login ana@demo.example --code", as: "ana", environment: service)
      try await terminal.waitForOutput("Code: ")
      func codes() -> [String] { dev.standardError.matches(of: /"code":"(\d{6})"/).map { String($0.1) } }
      try await eventually { codes().count == 1 }
      terminal.type(" \(codes()[0]) \n")
      #expect(try await terminal.exitStatus() == 0, "\(terminal.output)")
      #expect(terminal.output.hasSuffix("Logged in as Ana Duarte (ana) at \(url).\n"))

      let wrong = try await demo.ctl(
        ["login", "ana@demo.example", "--code"], as: "ben", input: "000000\n", environment: service)
      #expect(wrong.status == 1 && wrong.errors.contains("The code is wrong, expired or already used."))
      dev.signal(SIGTERM)
      #expect(try await dev.exitStatus(within: .seconds(120)) == 0)
    }
  }

  @Test func `scripts learn which value is missing`() async throws {
    try await Demo.run { demo in
      for (arguments, text) in [
        (["login", "ana"], "--password-stdin"), (["login", "ana", "--password-stdin"], "no password on stdin"),
        (["login", "--code"], "The login is missing."), (["login", "ana", "--password-stdin", "--code"], "either"),
        (["register", "rosa"], "email"),
      ] {
        let result = try await demo.ctl(arguments, as: "ana")
        #expect(result.status == 2 && result.errors.contains(text), "\(arguments) \(result)")
        #expect(result.output.isEmpty)
      }
    }
  }

  @Test func `tokens are kept for their owner alone, for each profile and service`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      let folder = demo.home.appending(path: "config/muster/ana")
      let service = demo.url.replacing(":", with: "%3A").replacing("/", with: "%2F")
      let tokens = folder.appending(path: "\(service)/tokens.json")
      for (file, mode) in [(tokens, 0o600), (tokens.deletingLastPathComponent(), 0o700), (folder, 0o700)] {
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == mode)
      }
      #expect(try await demo.say("whoami", as: "ana").contains("Username  "))
      #expect(try await demo.say("whoami --profile ben", as: "ana").contains("Ben Okafor"))
      // The service of the last login is remembered. Another one has no tokens.
      let remembered = try await demo.ctl(["whoami"], as: "ana", environment: ["MUSTER_SERVER": ""])
      #expect(remembered.status == 0 && remembered.output.contains(demo.url))
      let other = try await demo.ctl(["whoami", "--server", "http://127.0.0.1:9"], as: "ana")
      #expect(other.status == 3 && other.errors.contains("You are not logged in at http://127.0.0.1:9."))

      #expect(try await demo.say("logout", as: "ana") == "Logged out of \(demo.url).\n")
      #expect(!FileManager.default.fileExists(atPath: tokens.path))
      #expect(try await demo.ctl(["events"], as: "ana").status == 3)
      #expect(try await demo.ctl(["logout"], as: "ana").status == 3)
      #expect(try await demo.ctl(["whoami"], as: "ben").status == 0)
    }
  }
}
