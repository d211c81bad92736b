import Foundation
import Testing

@testable import MusterKit

@Suite struct StoreFolderTests {
  private func withFolder(_ body: (URL) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-store-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder)
  }

  @Test func `files stay for their user, and are deleted for another one`() throws {
    try withFolder { url in
      let data = Data("ana's".utf8)
      try StoreFolder(in: url, user: ScriptedServer.ana.id).write(data, to: "a")
      #expect(try StoreFolder(in: url, user: ScriptedServer.ana.id).read("a") == data)
      #expect(try StoreFolder(in: url, user: ScriptedServer.ben.id).read("a") == nil)
      #expect(try StoreFolder(in: url, user: ScriptedServer.ana.id).read("a") == nil)
    }
  }

  @Test func `another user's unsent writes stay until the app deletes them, and copies do not`() async throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "muster-store-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: url) }
    let states: [(user: Person, state: OutboxRecord.State, isUnsent: Bool)] = [
      (ScriptedServer.ana, .waiting, true), (ScriptedServer.ben, .refused(.withoutSubject), true),
      (ScriptedServer.cleo, .sent, false),
    ]
    let records = states.map { _, state, _ in
      OutboxRecord(
        id: UUID(), sequence: 1, write: .editProfile(ProfileEdit(bio: .set("Hi."))), key: .random(),
        createdAt: ScriptedServer.noon, state: state)
    }
    // All folders are made before the next user's login tidies them.
    for (person, record) in zip(states.map(\.user), records) {
      let folder = url.appending(path: "MusterStore/\(person.id.wire)")
      try FileManager.default.createDirectory(
        at: folder.appending(path: "outbox"), withIntermediateDirectories: true)
      try Data("copy".utf8).write(to: folder.appending(path: "events.copy"))
      try JSONEncoder().encode(record).write(to: folder.appending(path: "outbox/000000000001-\(record.id.wire).json"))
    }
    let dev: User.ID = ScriptedServer.id(4)
    _ = try StoreFolder(in: url, user: dev)
    #expect(try MusterStore.usersWithUnsentWrites(in: url) == [ScriptedServer.ana.id, ScriptedServer.ben.id])
    let paths = try FileManager.default.subpathsOfDirectory(atPath: url.path)
    #expect(!paths.contains { $0.hasSuffix(".copy") || $0.contains(ScriptedServer.cleo.id.wire) })
    // The same user logs in again.
    let again = try StoreFolder(in: url, user: ScriptedServer.ana.id)
    let files = try OutboxFiles(again, numbering: RequestCounter(in: again))
    #expect(await files.contents()?.records == [records[0].id: records[0]])

    try await MusterStore.forgetEverything(of: ScriptedServer.ana.id, in: url)
    try await MusterStore.forgetEverything(of: ScriptedServer.cleo.id, in: url)
    #expect(try MusterStore.usersWithUnsentWrites(in: url) == [ScriptedServer.ben.id])
    try await MusterStore.forgetEverything(of: ScriptedServer.ben.id, in: url)
    #expect(try MusterStore.usersWithUnsentWrites(in: url.appending(path: "none")) == [])
  }

  @Test func `a late write for an earlier user does not reach the next one`() throws {
    try withFolder { url in
      let ana = try StoreFolder(in: url, user: ScriptedServer.ana.id)
      try ana.makeSubfolder("outbox")
      let ben = try StoreFolder(in: url, user: ScriptedServer.ben.id)
      try ben.makeSubfolder("outbox")
      // As in another process, which still has the folder open.
      #expect(throws: StoreError.self) { try ana.write(Data("ana's".utf8), to: "outbox/1") }
      #expect(throws: StoreError.self) { try ana.write(Data("ana's".utf8), to: "a") }
      #expect(try ben.names(in: "outbox").isEmpty && ben.read("a") == nil)
      try ana.erase()
      #expect(try ben.names(in: "outbox").isEmpty)
      try ben.write(Data("ben's".utf8), to: "a")
    }
  }

  @Test func `the app's own files next to the store stay`() throws {
    try withFolder { url in
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
      let file = url.appending(path: "notes.txt")
      try Data("mine".utf8).write(to: file)
      _ = try StoreFolder(in: url, user: ScriptedServer.ana.id)
      try StoreFolder(in: url, user: ScriptedServer.ben.id).erase()
      #expect(try Data(contentsOf: file) == Data("mine".utf8))
    }
  }

  @Test func `after erasing, late writes leave nothing`() throws {
    try withFolder { url in
      let folder = try StoreFolder(in: url, user: ScriptedServer.ana.id)
      try folder.erase()
      try folder.write(Data("late".utf8), to: "a")
      #expect(!FileManager.default.fileExists(atPath: folder.url.path))
      #expect(try FileManager.default.contentsOfDirectory(atPath: url.path).isEmpty)
    }
  }

  @Test func `only the owner of the account may read the files`() throws {
    try withFolder { url in
      let folder = try StoreFolder(in: url, user: ScriptedServer.ana.id)
      try folder.write(Data("a".utf8), to: "a")
      func permissions(_ url: URL) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int
      }
      #expect(try permissions(folder.url) == 0o700)
      #expect(try permissions(folder.file("a")) == 0o600)
    }
  }

  @Test func `unfinished files of ended processes are deleted after an hour`() throws {
    try withFolder { url in
      let folder = try StoreFolder(in: url, user: ScriptedServer.ana.id)
      for (name, age) in [("old.new", 7200.0), ("young.new", 60)] {
        try Data("x".utf8).write(to: folder.file(name))
        try FileManager.default.setAttributes(
          [.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: folder.file(name).path)
      }
      let again = try StoreFolder(in: url, user: ScriptedServer.ana.id)
      #expect(again.read("old.new") == nil && again.read("young.new") != nil)
    }
  }
}
