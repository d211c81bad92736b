import Foundation
import Postgres
import Testing

/// Types of the database's own: enums, composite types, domains, and types of extensions.
@Suite(.timeLimit(.minutes(15)))
struct OwnTypeTests {
  enum Mood: String, SQLEnum, CaseIterable, Decodable {
    case sad
    case fine = "just \"fine\", really\\"
    case happy = "glücklich"
  }

  static let moods = """
    CREATE TYPE mood AS ENUM ('sad', 'just "fine", really\\', 'glücklich');
    CREATE TABLE days (day int, mood mood, moods mood[])
    """

  @Test func `an enum is a parameter without a cast, alone and in arrays, and is read back`() async throws {
    try await withDatabase(Self.moods) { database, _ in
      for (day, mood) in Mood.allCases.enumerated() {
        try await database.execute("INSERT INTO days VALUES (\(day), \(mood), \(Mood.allCases + [mood]))")
      }
      try await database.execute("INSERT INTO days VALUES (9, \(nil as Mood?), \([nil, Mood.sad]))")
      try await database.execute("INSERT INTO days VALUES (10, \(Mood.sad), \([] as [Mood]))")
      let rows = try await database.rows("SELECT mood, moods FROM days ORDER BY day").decode(
        (Mood?, [Mood?]).self)
      #expect(rows.map(\.0) == Mood.allCases + [nil, .sad])
      #expect(rows.map(\.1) == Mood.allCases.map { Mood.allCases + [$0] } + [[nil, .sad], []])
      let happy: [Int]? = try await database.value(
        "SELECT array_agg(day ORDER BY day) FROM days WHERE mood = ANY(\([Mood.happy, .fine])) AND mood <> \(Mood.fine)"
      )
      #expect(happy == [2])
    }
  }

  @Test func `an enum that was created again has another oid, and works at once`() async throws {
    try await withDatabase(Self.moods) { database, server in
      for _ in 0..<2 {
        try await database.batch("INSERT INTO days (mood) VALUES (\(Mood.happy))")
        #expect(try await database.value("SELECT mood FROM days WHERE mood = \(Mood.happy)") == Mood.happy)
        try await server.script("DROP TABLE days; DROP TYPE mood; \(Self.moods)")
      }
    }
  }

  @Test func `a label that the database or Swift does not have is an error`() async throws {
    enum Other: String, SQLEnum { case sad, angry }
    try await withDatabase(Self.moods) { database, server in
      let sent = try await postgresError {
        try await database.execute("INSERT INTO days (mood) VALUES (\(Other.angry))")
      }
      #expect(sent.sqlState == "22P02")
      try await server.script("INSERT INTO days (mood) VALUES ('glücklich')")
      let read = try await postgresError { _ = try await database.value("SELECT mood FROM days", as: Other.self) }
      #expect(read.message == "column \"mood\" holds a value that does not fit, wanted Other")
    }
  }

  @Test func `COPY writes enums, but rejects arrays of them`() async throws {
    try await withDatabase(Self.moods) { _, server in
      _ = try await ScriptConnection.run(server.url) { connection in
        try connection.copy(into: "days", columns: ["day", "mood"]) { rows in
          try rows.append(1 as Int32, Mood.fine)
          try rows.append(2 as Int32, nil as Mood?)
          let error = #expect(throws: PostgresError.self) { try rows.append(3 as Int32, [Mood.fine]) }
          #expect(error?.message == "column 2 of row 3 cannot be encoded for PostgreSQL")
        }
      }
      #expect(try await server.value("SELECT array_agg(mood ORDER BY day) FROM days") == [Mood.fine, nil])
    }
  }

  /// A composite type: its text form is sent, and its fields are read.
  struct Place: SQLValue, Equatable {
    var name: String
    var floor: Int?

    static var sqlType: SQLType { .inferred }

    init(name: String, floor: Int?) {
      (self.name, self.floor) = (name, floor)
    }

    func encode(into bytes: inout [UInt8]) -> SQLEncoding {
      let quoted = name.replacing("\\", with: "\\\\").replacing("\"", with: "\"\"")
      bytes += Array("(\"\(quoted)\",\(floor.map(String.init) ?? ""))".utf8)
      return name.utf8.contains(0) ? .unrepresentable : .bytes
    }

    init(cell: SQLCell) throws {
      let fields = try cell.fields(2)
      (name, floor) = (try String(cell: fields[0]), try Int?(cell: fields[1]))
    }
  }

  /// NULL after all, when its bytes are there already.
  private struct Hesitant: SQLValue {
    static var sqlType: SQLType { .text }

    init() {}

    init(cell: SQLCell) throws {}

    func encode(into bytes: inout [UInt8]) -> SQLEncoding {
      bytes += Array(repeating: 255, count: 20)
      return .null
    }
  }

  @Test func `bytes of a value that turns out to be NULL are not sent`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(try await database.first("SELECT \(1), \(Hesitant()) IS NULL, \("after")"))
      #expect(try row[0] == 1)
      #expect(try row[1])
      #expect(try row[2] == "after")
    }
  }

  @Test func `a composite type, alone and in arrays`() async throws {
    let setUp = "CREATE TYPE place AS (name text, floor int); CREATE TABLE plans (place place, places place[])"
    try await withDatabase(setUp) { database, _ in
      let places = [Place(name: #"a "b", (c) \d"#, floor: 3), Place(name: "ä", floor: nil), Place(name: "", floor: -1)]
      for place in places {
        let row = try await database.execute(
          "INSERT INTO plans VALUES (\(place), \(places)) RETURNING place, places, (place).name, (place).floor")[0]
        #expect(try row["place"] == place)
        #expect(try row["places"] == places)
        #expect(try row["name"] == place.name)
        #expect(try row["floor"] == place.floor)
      }
      #expect(try await database.value("SELECT count(*) FROM plans WHERE place = \(places[0])::place") == 1)
      let error = try await postgresError { _ = try await database.value("SELECT 1 AS one", as: Place.self) }
      #expect(error.message == "column \"one\" has the type int4 (oid 23), wanted Place")
      let other = try await postgresError { _ = try await database.value("SELECT ROW('a')", as: Place.self) }
      #expect(other.kind == .decoding)
    }
  }

  /// A record with a record in it.
  struct Visit: SQLRecord, Equatable {
    struct Visitor: SQLRecord, Equatable {
      let name: String

      init(name: String) { self.name = name }
      init(fields: inout SQLFields) throws { name = try fields.next() }
    }

    let day: Int
    let visitor: Visitor?

    init(day: Int, visitor: Visitor?) { (self.day, self.visitor) = (day, visitor) }
    init(fields: inout SQLFields) throws { (day, visitor) = (try fields.next(), try fields.next()) }
  }

  @Test func `records are read alone, in arrays and in records`() async throws {
    try await withDatabase { database, _ in
      let (first, second) = (Visit(day: 1, visitor: Visit.Visitor(name: "ana")), Visit(day: 2, visitor: nil))
      let row = try #require(
        try await database.first(
          """
          SELECT ROW(1, ROW('ana'::text)) AS one, NULL::record AS none,
            ARRAY(SELECT ROW(n, CASE n WHEN 1 THEN ROW('ana'::text) END) FROM generate_series(1, 2) AS n) AS two,
            ARRAY(SELECT ROW(n) FROM generate_series(1, 0) AS n) AS zero
          """))
      #expect(try row["one"] == first)
      #expect(try row["none"] as Visit? == nil)
      #expect(try row["two"] == [first, second])
      #expect(try row["zero"] == [Visit]())
    }
  }

  @Test(arguments: [
    ("ROW(1)", "cannot be read: it has no field 2"), ("ROW(1, NULL, 3)", "cannot be read: it has 3 fields"),
    ("ROW('one'::text, NULL)", "cannot be read: field 1 has the type text (oid 25), wanted Int"),
    ("ROW(NULL::int, NULL)", "cannot be read: field 1 is NULL, wanted Int"),
    ("ROW(1, ROW(2))", "cannot be read: field 2 cannot be read: field 1 has the type int4"),
    ("1", "has the type int4"), ("NULL::record", "is NULL"),
  ])
  func `a record of another shape is an error that names column and field`(
    record: String, message: String
  ) async throws {
    try await withDatabase { database, _ in
      let error = try await postgresError {
        _ = try await database.value("SELECT \(unescaped: record) AS visit", as: Visit.self)
      }
      #expect(error.kind == .decoding)
      #expect(error.message.hasPrefix("column \"visit\" \(message)"), "\(error.message)")
    }
  }

  @Test func `a record cannot be sent`() async throws {
    try await withDatabase { database, _ in
      let error = try await postgresError {
        _ = try await database.value("SELECT \(Visit(day: 1, visitor: nil)) IS NULL", as: Bool.self)
      }
      #expect(error.kind == .invalidParameter)
    }
  }

  /// A type with an error of its own.
  struct Even: SQLValue {
    struct IsOdd: Error {}
    static var sqlType: SQLType { .int8 }
    func encode(into bytes: inout [UInt8]) -> SQLEncoding { 2.encode(into: &bytes) }
    init(cell: SQLCell) throws {
      guard try Int(cell: cell) % 2 == 0 else { throw IsOdd() }
    }
  }

  @Test func `an error of a type's own becomes an error that names the column`() async throws {
    try await withDatabase { database, _ in
      let error = try await postgresError { _ = try await database.value("SELECT 3 AS number", as: Even.self) }
      #expect(error.kind == .decoding)
      #expect(error.message == "column \"number\" cannot be read: IsOdd(), wanted Even")
    }
  }

  @Test func `text of an inferred type with U+0000 is rejected, and never sent truncated`() async throws {
    struct Label: SQLEnum {
      var rawValue: String
      init(rawValue: String) { self.rawValue = rawValue }
    }
    try await withDatabase { database, _ in
      for sql: SQL in ["SELECT \(Label(rawValue: "a\0b"))", "SELECT \([Label(rawValue: "a\0b")])::text[]"] {
        let error = try await postgresError { _ = try await database.rows(sql) }
        #expect(error.kind == .invalidParameter)
      }
      #expect(try await database.value("SELECT \(Label(rawValue: ""))::text || \("x")") == "x")
      let row = try #require(try await database.first("SELECT \(1), \(Label(rawValue: "ab")), \(""), \(2)"))
      #expect(try row.decode((Int, String, String, Int).self) == (1, "ab", "", 2))
    }
  }
}
