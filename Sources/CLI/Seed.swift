import App
import ArgumentParser
import Foundation
import Postgres

struct Seed: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Fill the database with people and plans.", subcommands: [Demo.self, Load.self])

  struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "The small cast for previews: the same ids every time, dates relative to today, safe to repeat.")

    @Flag(
      help: """
        Delete the demo's users first, with all that they did, and any other account that has one of their e-mail \
        addresses.
        """)
    var reset = false

    func run() async throws {
      let dependencies = try await Dependencies(
        try await configure(for: .tool), name: "muster seed", logger: makeLogger())
      let logins: DemoSeed.Logins
      do {
        logins = try await DemoSeed().plant(in: dependencies, resets: reset)
      } catch {
        await dependencies.close()
        throw error
      }
      await dependencies.close()
      for line in logins.changed { print("\(line) --reset undoes that.") }
      if let login = logins.working {
        print("seeded the demo: log in as \(login) with the password \(DemoSeed.password)")
      } else {
        print("seeded the demo: none of its users has its password")
      }
    }
  }
}

extension Seed {
  struct Load: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Synthetic people and plans for load tests; everybody's password is \(LoadSeed.password).")

    @Option(help: "How many people. Each has some 50 friends and two events with some 10 guests.")
    var users = 100_000

    @Option(help: "The same seed makes the same data.")
    var seed: UInt64 = 1

    @Flag(help: "Add them to a database that holds users already.")
    var force = false

    @Option(help: "Sign in 2,000 of them, and write a line \"userId eventId accessToken\" for each to this file.")
    var tokens: String?

    func validate() throws {
      guard (100...10_000_000).contains(users) else { throw ValidationError("--users must be from 100 to 10000000") }
    }

    func run() async throws {
      let configuration =
        tokens == nil ? try await configure(for: .tool) : try await configure(for: .serve)
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
      print("seeded \(users) people in \((ContinuousClock.now - start).components.seconds) s")
    }
  }
}
