import App
import ArgumentParser
import Foundation
import Postgres

struct Seed: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Add users and events to the database, or export the demo.",
    subcommands: [Demo.self, Load.self, Export.self])

  struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add the demo data: the same ids every time, dates relative to today, safe to repeat.")

    @Flag(
      help: """
        Delete the demo users and all their data first, and any other account that has one of their e-mail addresses.
        """)
    var reset = false

    func run() async throws {
      let dependencies = try await Dependencies(
        try await MusterConfiguration.loadWithWarnings(for: .tool), name: "muster seed", logger: makeLogger())
      let logins: DemoSeed.Logins
      do {
        logins = try await DemoSeed().plant(in: dependencies, resets: reset)
      } catch {
        await dependencies.close()
        throw error
      }
      await dependencies.close()
      for line in logins.leftOut { print("\(line) Rename or delete that account, and seed again.") }
      for line in logins.changed { print("\(line) Use --reset to undo that.") }
      if let login = logins.working {
        print("seeded the demo: log in as \(login) with the password \(DemoSeed.password)")
      } else {
        print("seeded the demo: no demo user has the demo password")
      }
    }
  }
}

extension Seed {
  struct Load: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add synthetic users and events for load tests. Every user's password is \(LoadSeed.password).")

    @Option(help: "The number of users. Each has about 50 friends, and two events with about 10 guests.")
    var users = 100_000

    @Option(help: "The random seed. The same seed produces the same data.")
    var seed: UInt64 = 1

    @Flag(help: "Seed even if the database already has users.")
    var force = false

    @Option(help: "Log in 2,000 users, and write a line \"userId eventId accessToken\" for each to this file.")
    var tokens: String?

    func validate() throws {
      guard (100...10_000_000).contains(users) else { throw ValidationError("--users must be from 100 to 10000000.") }
    }

    func run() async throws {
      let configuration =
        tokens == nil
        ? try await MusterConfiguration.loadWithWarnings(for: .tool)
        : try await MusterConfiguration.loadWithWarnings(for: .serve)
      let seed = LoadSeed(users: users, seed: seed)
      let bar = ProgressBar()
      let start = ContinuousClock.now
      try await seed.plant(in: configuration, isForced: force) { bar.show($0, $1) }
      bar.end()
      if let tokens {
        let dependencies = try await Dependencies(configuration, name: "muster seed", logger: makeLogger())
        try await seed.tokens(dependencies).write(toFile: tokens, atomically: true, encoding: .utf8)
        await dependencies.close()
      }
      print("seeded \(users) users in \((ContinuousClock.now - start).components.seconds) s")
    }
  }
}
