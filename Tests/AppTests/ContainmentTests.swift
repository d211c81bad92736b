import Foundation
import TestSupport
import Testing

@testable import App

/// Limits on what others on the machine can get from a process of ours, and on a decoder that an attacker has taken
/// over.
@Suite struct ContainmentTests {
  // MARK: The decoder

  /// A program of an attacker in place of the decoder. It puts what it gets into the picture, which anyone can load.
  /// It runs nothing but itself, so that it cannot fail for want of a program.
  private static func hostile(_ secretFile: String, port: Int, _ writable: String) -> [String: String] {
    let thumbnail = #"""
      trap 'exit 0' EXIT
      exec 2>&-
      printf '\xff\xd8\xff began'
      for file in /proc/$PPID/environ /proc/$PPID/maps /proc/$PPID/io '\#(secretFile)' /etc/hostname /etc/passwd; do
        text=
        IFS= read -r -N 100000 text <"$file"
        [ -z "$text" ] || printf ' read %s: %s' "$file" "$text"
      done
      exec 3</proc/$PPID/mem && printf ' memory'
      exec 4<>/dev/tcp/127.0.0.1/\#(port) && printf ' tcp'
      exec 5<>/dev/udp/127.0.0.1/\#(port) && printf ' udp'
      kill -0 $PPID && printf ' signal'
      : >>'\#(secretFile)' && printf ' changed'
      : >'\#(writable)/made' && printf ' made'
      printf ' ended'
      for number in {1..20}; do : & done
      printf ' forked'
      """#
    return [
      "vipsheader": "echo 'stdin: 64x64 uchar, 3 bands, srgb, jpegload_source'", "vipsthumbnail": thumbnail,
    ]
  }

  /// Runs `body` with a folder of hostile programs, and with a secret file of an account.
  private func withHostilePrograms(
    of account: uid_t, port: Int, _ body: (_ folder: String, _ secretFile: String) async throws -> Void
  ) async throws {
    try await StandIns.with([:]) { secrets in
      let file = "\(secrets)/keys"
      try Data("the-secret-of-a-file".utf8).write(to: URL(filePath: file))
      #expect(chmod(file, 0o600) == 0 && chown(file, account, gid_t.max) == 0)
      #expect(chown(secrets, account, gid_t.max) == 0)
      try await StandIns.with(Self.hostile(file, port: port, secrets)) { try await body($0, file) }
    }
  }

  #if os(Linux)
    @Test func `a program in place of the decoder gets nothing`() async throws {
      // Root, which has all rights until the decoder loses them, and an account that owns the service's secrets.
      for account in geteuid() == 0 ? [0, 65_534] : [geteuid()] {
        try await TestApp.run { app in
          let proxy = try FaultProxy(inFrontOf: app.databaseURL)
          defer { proxy.close() }
          try await withHostilePrograms(of: account, port: Int(proxy.port)) { folder, file in
            try await withService(of: app, as: account, through: proxy, path: folder) { program, served in
              let ana = try await app.signUp("ana")
              let url = try await Phone(served, "ana", id: ana.userID, accessToken: ana.accessToken).show(Sample.png())
              let shown = try await served.fetch(url.replacing("http://muster.test", with: served.url))
              // Landlock keeps files from it. Where a system has none, the account's own files are the exception.
              let hasLandlock = Containment.measures.allSatisfy { $0.by != nil }
              let got = String(decoding: shown.bytes.dropFirst(3), as: UTF8.self)
              if hasLandlock || account == 0 {
                #expect(hasLandlock ? got == " began ended" : !got.contains("the-secret"), "\(account)")
              }
              for secret in Self.secrets + [" tcp", " udp", " signal", " memory", " changed", " made", " forked"] {
                #expect(!got.contains(secret), "\(account) got \(secret)")
              }
              #expect(got.hasPrefix(" began") && got.hasSuffix(" ended"), "\(got)")
              #expect(FileManager.default.contents(atPath: file) == Data("the-secret-of-a-file".utf8))
              // It is still there.
              #expect(program.isRunning)
            }
          }
          try await app.takeNotifications()
        }
      }
    }

    @Test func `the same program gets everything if nothing contains it`() async throws {
      try await TestApp.run { app in
        let port = try #require(URL(string: app.url)?.port)
        try await withHostilePrograms(of: geteuid(), port: port) { folder, _ in
          let program = try await Program("\(folder)/vipsthumbnail", [])
          #expect(try await program.exitStatus() == 0)
          for got in [
            "environ: ", "maps: ", "the-secret-of-a-file", "/etc/passwd: ", " tcp", " udp", " signal", " changed",
            " made",
            " forked",
          ] {
            #expect(program.standardOutput.contains(got), "\(got): \(program.standardOutput.suffix(200))")
          }
        }
      }
    }

    /// Runs `body` with a function that runs a program as an account, contained or not.
    private func withLauncher(
      capabilities: [String] = [],
      _ body: (
        _ run: (_ account: uid_t, _ contained: Bool, _ command: String...) async throws -> (
          status: Int32, output: String, errors: String
        )
      ) async throws -> Void
    ) async throws {
      try await StandIns.with([:]) { folder in
        // The account may not reach the checkout.
        let launcher = "\(folder)/muster"
        try FileManager.default.copyItem(atPath: Program.path("muster"), toPath: launcher)
        try await body { account, contained, command in
          let change = ["setpriv", "--reuid", "\(account)", "--regid", "\(account)", "--clear-groups"] + capabilities
          let whole = (geteuid() == 0 ? change : []) + (contained ? [launcher, "contained"] : []) + command
          let program = try await Program("/usr/bin/env", whole, in: "/")
          return (try await program.exitStatus(), program.standardOutput, program.standardError)
        }
      }
    }

    /// A supervisor can give some to a service that is not root, so that it may listen on port 443.
    @Test func `a contained program has no capabilities`() async throws {
      let granted = "+dac_override,+net_bind_service"
      try await withLauncher(capabilities: ["--inh-caps", granted, "--ambient-caps", granted]) { run in
        for (account, contained) in [(65_534, false), (65_534, true), (1, true)] as [(uid_t, Bool)] {
          let dump = try await run(account, contained, "/usr/bin/setpriv", "--dump")
          #expect(dump.status == 0, "\(dump)")
          let hasSome = !contained && geteuid() == 0
          for kind in ["Inheritable", "Ambient"] {
            let expected = hasSome ? "dac_override,net_bind_service" : "[none]"
            #expect(dump.output.contains("\(kind) capabilities: \(expected)\n"), "\(account): \(dump.output)")
          }
          #expect(dump.output.contains("no_new_privs: \(contained ? 1 : 0)\n"), "\(dump.output)")
        }
      }
    }

    /// They outlive the process, and their numbers can be guessed.
    @Test func `a contained program makes no objects of System V, and cannot use or remove those of others`()
      async throws
    {
      try await withLauncher { run in
        for (kind, size) in [
          ("m", ["--shmem", "64"]), ("q", ["--queue", "--mode=0600"]), ("s", ["--semaphore", "1"]),
        ] {
          let refused = try await run(65_534, true, "/usr/bin/ipcmk", size[0], size[1])
          #expect(refused.status == 1 && refused.errors.contains("Operation not permitted"), "\(kind): \(refused)")
          // Outside of it, the same account can.
          let made = try await run(65_534, false, "/usr/bin/ipcmk", size[0], size[1])
          let id = try #require(made.output.firstMatch(of: /id: (\d+)/)?.1, "\(kind): \(made)")
          let kept = try await run(65_534, true, "/usr/bin/ipcrm", "-\(kind)", String(id))
          #expect(kept.status == 1 && !kept.errors.isEmpty, "\(kind): \(kept)")
          let removed = try await run(65_534, false, "/usr/bin/ipcrm", "-\(kind)", String(id))
          #expect(removed.status == 0, "\(kind) was gone: \(removed)")
        }
      }
    }

    // MARK: The service

    private static let secrets = [
      TestApp.accessTokenKeys, TestApp.refreshTokenKeys, "the-password-of-the-database", "the-password-of-mails",
    ]

    /// Runs `body` with `muster serve` of another account, and with the decoder in this folder.
    private func withService(
      of app: TestApp, as account: uid_t, through proxy: FaultProxy, path: String? = nil,
      _ body: (Program, TestApp) async throws -> Void
    ) async throws {
      try await StandIns.with([:]) { folder in
        let name = try #require(app.databaseURL.firstMatch(of: /\/([a-z0-9_]+)\?/)?.1)
        var environment = Muster.environment(
          "postgresql://\(TestCluster.programRole):the-password-of-the-database@127.0.0.1:\(proxy.port)/\(name)")
        environment["MUSTER_MAIL_WEBHOOK_SECRET"] =
          "whsec_" + Data("the-password-of-mails-1234567".utf8).base64EncodedString()
        if let path { environment["PATH"] = "\(path):/usr/bin:/bin" }
        var command = [Program.path("muster"), "serve", "--port", "0"]
        if account != geteuid() {
          // The account may not reach the checkout.
          command[0] = "\(folder)/muster"
          try FileManager.default.copyItem(atPath: Program.path("muster"), toPath: command[0])
          command = ["setpriv", "--reuid", "\(account)", "--regid", "\(account)", "--clear-groups"] + command
        }
        let program = try await Program("/usr/bin/env", command, environment: environment, in: "/")
        defer { program.signal(SIGKILL) }
        try await body(program, try await app.served(by: program))
        program.signal(SIGTERM)
        #expect(try await program.exitStatus() == 0)
      }
    }

    @Test func `the environment of a running service shows no secrets, and only to root`() async throws {
      for account in geteuid() == 0 ? [0, 65_534] : [geteuid()] {
        try await TestApp.run { app in
          let proxy = try FaultProxy(inFrontOf: app.databaseURL)
          defer { proxy.close() }
          try await withService(of: app, as: account, through: proxy) { program, _ in
            let path = "/proc/\(program.pid)/environ"
            #expect(try Self.owner(of: path) == 0)
            if geteuid() == 0 {
              let environ = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
              #expect(environ.contains("MUSTER_SCRYPT=ln=4"))
              for secret in Self.secrets { #expect(!environ.contains(secret)) }
              #expect(!environ.contains(Data("the-password-of-mails".utf8).base64EncodedString().prefix(20)))
            }
            if account != 0 {
              let shell = "exec cat '\(path)'"
              let change = ["setpriv", "--reuid", "\(account)", "--regid", "\(account)", "--clear-groups"]
              let command = (geteuid() == 0 ? change : []) + ["/bin/sh", "-c", shell]
              let other = try await Program("/usr/bin/env", command)
              #expect(try await other.exitStatus() != 0 && other.standardOutput.isEmpty)
              #expect(other.standardError.contains("Permission denied"))
            }
          }
        }
      }
    }

    private static func owner(of path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path)[.ownerAccountID] as? Int
    }

    @Test func `a worker and a command also forget their secrets`() async throws {
      try await TestApp.run { app in
        let worker = try await Program(
          Program.path("muster"), ["worker"], environment: Muster.environment(app.databaseURL))
        defer { worker.signal(SIGKILL) }
        try await worker.waitForOutput(#""message":"started""#)
        #expect(try Self.owner(of: "/proc/\(worker.pid)/environ") == 0)
        if geteuid() == 0 {
          let environ = String(
            decoding: try Data(contentsOf: URL(filePath: "/proc/\(worker.pid)/environ")), as: UTF8.self)
          #expect(environ.contains("MUSTER_SCRYPT=ln=4"))
          for secret in [TestApp.accessTokenKeys, TestApp.refreshTokenKeys, TestCluster.limited(app.databaseURL)] {
            #expect(!environ.contains(secret))
          }
        }
        worker.signal(SIGTERM)
        #expect(try await worker.exitStatus() == 0)
      }
    }

    // MARK: What a process inherits

    /// Ways to start a service that a shell, a supervisor or a container may choose.
    private static let starts = [
      "exec env --ignore-signal=CHLD", "exec env --block-signal=CHLD", "exec env --ignore-signal=PIPE,XCPU,XFSZ",
      "exec <&-", "exec <&- >&-", "ulimit -f 100; exec env",
    ]

    @Test(arguments: starts) func `pictures are decoded however the service was started`(_ start: String) async throws {
      try await TestApp.run { app in
        let ana = try await app.signUp("ana")
        let command = start.hasSuffix("-") ? "\(start); exec" : start
        let program = try await Program(
          "/bin/bash", ["-c", #"\#(command) '\#(Program.path("muster"))' serve --port 0"#],
          environment: Muster.environment(app.databaseURL))
        defer { program.signal(SIGKILL) }
        let served = try await app.served(by: program)
        let url = try await Phone(served, "ana", id: ana.userID, accessToken: ana.accessToken).show(Sample.png())
        let shown = try await served.fetch(url.replacing("http://muster.test", with: served.url))
        #expect(try Sample.sides(of: shown.bytes) == [1, 1])
        #expect(!program.standardError.contains("cannot be"), "\(program.standardError)")
        program.signal(SIGTERM)
        #expect(try await program.exitStatus() == 0)
      }
    }
  #endif

  @Test func `a program that cannot be contained does not run`() async throws {
    for (arguments, reason) in [
      (["contained", "relative"], "the path of a program is missing"),
      (["contained", "/nonexistent/vipsheader"], "cannot execute /nonexistent/vipsheader"),
    ] {
      let program = try await Program(Program.path("muster"), arguments)
      #expect(try await program.exitStatus() == 126)
      #expect(program.standardError.hasPrefix(reason), "\(program.standardError)")
    }
    let help = try await Program(Program.path("muster"), ["--help"])
    #expect(try await help.exitStatus() == 0 && !help.standardOutput.contains("contained"))
  }
}
