import App
import ArgumentParser
import Postgres

struct StampsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stamps", abstract: "Make phones read their lists again.", subcommands: [Move.self])

  struct Move: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Move everyone's stamps, so that every phone reads its lists again.",
      discussion:
        "Use it after a change that moves no stamps, such as a new MUSTER_PUBLIC_URL. The service can keep running.")

    @Option(help: "Move only the stamps of this collection, such as friends.")
    var collection: App.Collection?

    func run() async throws {
      try await withDatabase("muster stamps") { database in
        let count = try await Stamps.move(collection.map { [$0] } ?? App.Collection.allCases, in: database)
        print("moved the stamps of \(count) users")
      }
    }
  }
}

extension App.Collection: ExpressibleByArgument {}
