import App
import ArgumentParser
import Postgres

struct Seed: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Fill the database with people and plans.", subcommands: [Demo.self])

  struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "The small cast for previews: the same ids every time, dates relative to today, safe to repeat.")

    func run() async throws {
      let dependencies = try await Dependencies(
        try await MusterConfiguration.loadForTools(), name: "muster seed", logger: makeLogger())
      try await DemoSeed().plant(in: dependencies)
      dependencies.database.close()
      print("seeded the demo: log in as \(DemoSeed.login) with the password \(DemoSeed.password)")
    }
  }
}

struct Keys: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Print fresh values for the two key variables.")

  func run() {
    print("MUSTER_ACCESS_TOKEN_KEYS=\(SigningKeys.generate())")
    print("MUSTER_REFRESH_TOKEN_KEYS=\(SigningKeys.generate())")
  }
}
