import Foundation
import Logging
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct SeedExportTests {
  /// The files of an export, by name.
  private typealias Files = [String: Data]

  private func files(in folder: URL) throws -> Files {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    return Dictionary(
      uniqueKeysWithValues: try names.map { ($0, try Data(contentsOf: folder.appending(path: $0))) })
  }

  private func withFolder(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-export-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder)
  }

  private func export(_ day: String = SeedExport.day) async throws -> Files {
    var files: Files = [:]
    try await withFolder { folder in
      try await TestCluster.withDatabase { database in
        let export = try #require(try SeedExport(day: day, logger: Logger(label: "test")))
        try await export.write(to: folder, database: database)
      }
      files = try self.files(in: folder)
    }
    return files
  }

  private func text(_ data: Data?) -> String { String(decoding: data ?? Data(), as: UTF8.self) }

  private func differences(_ one: Files, _ other: Files) -> [String] {
    Set(one.keys).union(other.keys).filter { one[$0] != other[$0] }.sorted()
  }

  @Test func `two exports of a day are the same, wherever and whenever they are made`() async throws {
    let (first, second) = (try await export(), try await export())
    #expect(differences(first, second) == [])
    try await withFolder { folder in
      // The program, far from the time zone and the environment of the tests.
      let program = try await Program(
        Program.path("muster"), ["seed", "export", folder.path],
        environment: [
          "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "MUSTER_PUBLIC_URL": "http://elsewhere.example",
          "DATABASE_URL": "postgresql://nowhere.invalid/muster",
        ], in: "/tmp")
      #expect(try await program.exitStatus(within: .seconds(60)) == 0, "\(program.standardError)")
      #expect(program.standardOutput == "exported the demo of \(SeedExport.day) to \(folder.path)\n")
      #expect(differences(first, try files(in: folder)) == [])
      // The private PostgreSQL is gone, and its folder.
      #expect(program.standardError == "")
    }
  }

  @Test func `nothing in an export depends on the time when it is made`() async throws {
    let today = String(Timestamp.now().rfc3339().prefix(10))
    let files = try await export("2031-03-04")
    for (name, data) in files where !name.hasPrefix("picture-") {
      for day in [today, today.replacing("-", with: "")] {
        #expect(!text(data).contains(day), "\(name)")
      }
    }
    #expect(text(files["get-events.json"]).contains("2031-03-06T09:30:00Z"))
    for bad in ["2026-13-01", "tomorrow", "2026-05-01T00:00:00Z", ""] {
      #expect(try SeedExport(day: bad, logger: Logger(label: "test")) == nil)
    }
  }

  @Test func `the index names every file, and every collection is there`() async throws {
    let files = try await export()
    let index = try JSON(parsing: try #require(files["index.json"]))
    #expect(index["baseUrl"].string == "https://muster.example" && index["time"].string == "2026-05-01T09:30:00Z")
    let calls = index["calls"].array
    let names = calls.compactMap { $0["file"].string }
    #expect(Set(names).count == names.count)
    #expect(Set(names).union(["index.json", "rules.json"]) == Set(files.keys))
    let gets = calls.filter { $0["method"].string == "GET" }.compactMap { $0["path"].string }
    for path in Phone.collections.values { #expect(gets.contains("/api/v1/\(path)"), "\(path)") }
    #expect(gets.count { $0.hasSuffix("/calendar.ics") } == 16)
    #expect(gets.filter { $0.hasSuffix("/links") } == ["/api/v1/events/01900000-0000-7000-8002-000000000010/links"])
    #expect(gets.count { $0.hasPrefix("/pictures/") } == 36)
    #expect(calls.filter { $0["status"].int == 404 }.count == 1)
    for name in names where name.hasSuffix(".json") {
      #expect(throws: Never.self, "\(name)") { try JSON(parsing: files[name] ?? Data()) }
    }
    // One member per line.
    #expect(text(files["get-friends.json"]).hasPrefix("{\n  \"items\": [\n    {\n      \"user\": {\n        \"id\": "))
  }

  @Test func `an export has no tokens, keys or passwords`() async throws {
    let files = try await export()
    let login = try JSON(parsing: try #require(files["post-auth-login.json"]))
    #expect(login["accessToken"].string == "preview-access-token")
    #expect(login["refreshToken"].string == "preview-refresh-token")
    for (name, data) in files where !name.hasPrefix("picture-") {
      for secret in ["mr1.", DemoSeed.password, "whsec_", "scrypt"] {
        #expect(!text(data).contains(secret), "\(name) has \(secret)")
      }
      #expect(text(data).firstMatch(of: /eyJ[\w-]+\.eyJ/) == nil, "\(name) has an access token")
      for id in text(data).matches(of: /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/) {
        #expect(id.0.hasPrefix("01900000-0000-7000-"), "\(name) has the random id \(id.0)")
      }
    }
  }

  @Test func `an export replaces an earlier one and nothing else`() async throws {
    try await withFolder { folder in
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      func write(_ text: String, _ name: String) throws {
        try Data(text.utf8).write(to: folder.appending(path: name))
      }
      try write("mine", "notes.txt")
      // An index of another program is not an export.
      for foreign in [nil, "{}", #"{"calls": [{"file": "notes.txt"}]}"#] {
        if let foreign { try write(foreign, "index.json") }
        let error = #expect(throws: AppError.self) { try ExportFolder(folder) }
        #expect(error?.message.contains(folder.path) == true)
      }

      let index =
        #"{"baseUrl": "", "time": "", "user": "", "calls": [{"file": "old.json"}, {"file": "../notes.txt"}, {"file": ".hidden"}]}"#
      for (name, text) in [("index.json", index), ("old.json", "{}"), (".hidden", "mine")] { try write(text, name) }
      try ExportFolder(folder).write([ExportFolder.File(name: "new.json", bytes: Data("{}".utf8))])
      #expect(
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.path))
          == ["notes.txt", "index.json", "new.json", ".hidden"])
    }
  }

  @Test(arguments: [
    (#"{}"#, "{}\n"), (#"[]"#, "[]\n"), (#""a\"{,:[""#, "\"a\\\"{,:[\"\n"), (#"{"a":[]}"#, "{\n  \"a\": []\n}\n"),
    (
      #"{"a": [1,{"b":"\\"}], "c":null}"#,
      "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"\\\\\"\n    }\n  ],\n  \"c\": null\n}\n"
    ),
  ]) func `JSON is indented`(plain: String, indented: String) {
    #expect(IndentedJSON.text(plain.utf8) == indented)
    // Indented text stays as it is.
    #expect(IndentedJSON.text(indented.utf8) == indented)
  }
}
