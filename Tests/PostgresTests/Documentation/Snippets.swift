import Foundation
import Postgres

/// The Swift code of the documentation. Each part between `// snippet` and `// end` is a block of an article, word for
/// word: `SnippetTests` compares them, and runs the tutorial.
enum Snippets {
  static func connect() throws -> Database {
    // snippet
    let database = try Database(Database.Configuration(url: "postgresql://app@localhost/plans"))
    defer { database.close() }
    // end
    return database
  }

  static func overview(id: UUID) async throws -> String? {
    // snippet
    let database = try Database(
      Database.Configuration(url: "postgresql://app@db1,db2/app?target_session_attrs=read-write"))
    let title: String? = try await database.value("SELECT title FROM events WHERE id = \(id)")
    // end
    defer { database.close() }
    return title
  }

  static func migrate(_ url: String) async throws {
    // snippet
    let migrations = [
      Migration(
        fileName: "0001_events.sql",
        text: """
          CREATE TABLE events (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            title text NOT NULL,
            start_time timestamptz NOT NULL,
            visibility text NOT NULL CHECK (visibility IN ('open', 'secret')),
            seats bigint,
            CONSTRAINT events_title_once UNIQUE (title)
          );
          """)
    ]
    try await Migrator(url: url, migrations: migrations).up()
    // end
  }

  static func write(_ database: Database) async throws {
    // snippet
    enum Visibility: String, SQLValue {
      case open, secret
    }

    let start = Timestamp(microseconds: 1_777_658_400_000_000)
    try await database.execute(
      """
      INSERT INTO events (title, start_time, visibility, seats)
      VALUES (\("Pasta night"), \(start), \(Visibility.open), \(12))
      """)
    // end
  }

  static func read(_ database: Database) async throws -> Int? {
    // snippet
    let row = try await database.first("SELECT id, title FROM events WHERE title = \("Pasta night")")
    if let row {
      let id: UUID = try row["id"]
      let title: String = try row["title"]
      print(id, title)
    }
    let count: Int? = try await database.value("SELECT count(*) FROM events")
    // end
    return count
  }

  static func transaction(_ database: Database) async throws {
    // snippet
    try await database.transaction(isolation: .serializable, repeating: true) { transaction in
      let unlimited: Int? = try await transaction.value("SELECT count(*) FROM events WHERE seats IS NULL")
      guard unlimited == 0 else { return }
      try await transaction.rows("UPDATE events SET seats = seats / 2")
    }
    // end
  }

  static func copy(_ url: String) async throws -> Int {
    enum Visibility: String, SQLValue {
      case open, secret
    }
    let start = Timestamp(microseconds: 1_777_658_400_000_000)
    // snippet
    let count = try await ScriptConnection.run(url) { connection in
      try connection.copy(into: "events", columns: ["title", "start_time", "visibility"]) { rows in
        for number in 1...1000 { try rows.append("Event \(number)", start, Visibility.open) }
      }
    }
    // end
    return count
  }

  static func errors(_ database: Database) async throws {
    // snippet
    do {
      try await database.execute(
        "INSERT INTO events (title, start_time, visibility) VALUES ('Pasta night', now(), 'open')")
    } catch let error as PostgresError {
      if error.constraint == "events_title_once" {
        print("There is an event with this title.")
      } else if error.isUnavailable {
        print("Try again later.", error.mayHaveRun ? "The event may have been created." : "Nothing has happened.")
      } else {
        throw error
      }
    }
    // end
  }

  static func compile(_ database: Database, _ id: UUID) async throws {
    // snippet
    func isMember(of group: some SQLExpression<UUID>) -> SQL {
      "user_id IN (SELECT user_id FROM members WHERE group_id = \(group))"
    }
    let photos = CompiledSQL { (group: SQLArgument<UUID>) in
      "SELECT count(*) FROM photos WHERE \(isMember(of: group)) OR shared_with = \(group)"
    }
    let count: Int? = try await database.value(photos(id))
    // end
    print(count ?? 0)
  }

  static func run(_ database: Database) async throws {
    // snippet
    try await withTaskExecutorPreference(database.executor) {
      let count: Int? = try await database.value("SELECT count(*) FROM events")
      print("\(count ?? 0) events")
    }
    // end
  }

  static func listen(_ database: Database) {
    // snippet
    Task {
      for await event in database.notifications(on: "events") {
        if event == .mayHaveMissed { print("Read everything again.") }
      }
    }
    database.notify("events")
    // end
  }
}
