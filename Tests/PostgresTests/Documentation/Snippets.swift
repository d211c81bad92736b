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
          CREATE TYPE visibility AS ENUM ('open', 'secret');
          CREATE TABLE events (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            title text NOT NULL,
            start_time timestamptz NOT NULL,
            visibility visibility NOT NULL,
            price numeric(10, 2),
            CONSTRAINT events_title_once UNIQUE (title)
          );
          """)
    ]
    try await Migrator(url: url, migrations: migrations).up()
    // end
  }

  static func write(_ database: Database) async throws {
    // snippet
    enum Visibility: String, SQLEnum, Decodable {
      case open, secret
    }

    let start = Timestamp(microseconds: 1_777_658_400_000_000)
    try await database.execute(
      """
      INSERT INTO events (title, start_time, visibility, price)
      VALUES (\("Pasta night"), \(start), \(Visibility.open), \(Decimal(string: "12.50")))
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

  static func decode(_ database: Database) async throws -> [String] {
    enum Visibility: String, SQLEnum, Decodable {
      case open, secret
    }
    // snippet
    struct Event: Decodable {
      let id: UUID
      let title: String
      let startTime: Timestamp
      let visibility: Visibility
      let price: Decimal?
    }

    let rows = try await database.rows(
      "SELECT id, title, start_time, visibility, price FROM events ORDER BY start_time")
    let events = try rows.decode(Event.self, names: .snakeCase)
    let titles = try await database.rows("SELECT id, title FROM events").decode((UUID, String).self)
    // end
    guard events.count == titles.count, events.allSatisfy({ $0.visibility == .open }) else { return [] }
    return titles.map(\.1)
  }

  static func transaction(_ database: Database) async throws {
    // snippet
    try await database.transaction(isolation: .serializable, repeating: true) { transaction in
      let free: Int? = try await transaction.value("SELECT count(*) FROM events WHERE price IS NULL")
      guard free == 0 else { return }
      try await transaction.rows("UPDATE events SET price = price / 2")
    }
    // end
    // snippet
    try await database.transaction { transaction in
      do {
        try await transaction.savepoint {
          try await transaction.rows(
            "INSERT INTO events (title, start_time, visibility) VALUES ('Pasta night', now(), 'open')")
        }
      } catch let error as PostgresError where error.constraint == "events_title_once" {
        try await transaction.rows("UPDATE events SET start_time = now() WHERE title = 'Pasta night'")
      }
    }
    // end
  }

  static func stream(_ database: Database) async throws {
    // snippet
    try await database.slow.stream("SELECT id, title FROM events") { rows in
      for try await row in rows {
        let (id, title) = try row.decode((UUID, String).self)
        print(id, title)
      }
    }
    // end
  }

  static func copy(_ url: String) async throws -> Int {
    // snippet
    let total = try await ScriptConnection.run(url) { connection in
      try connection.copy("SELECT id, title FROM events", as: (UUID, String).self) { id, title in
        print(id, title)
      }
    }
    // end
    return total
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
