import Foundation
import Testing

@testable import MusterKit

@Suite final class FileTokenStoreTests {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "muster-tokens-\(UUID())")
  private let store: FileTokenStore

  init() { store = FileTokenStore(file: folder.appending(path: "deep/tokens.json")) }

  deinit { try? FileManager.default.removeItem(at: folder) }

  private func mode(_ url: URL) throws -> Int {
    try #require(try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int)
  }

  private func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: store.file.deletingLastPathComponent().path).sorted()
  }

  @Test func `tokens come back as they were saved`() throws {
    #expect(try store.load() == nil)
    var tokens = StoredTokens.sample(1)
    tokens.accessExpiresAt = Date(timeIntervalSince1970: 1_777_777_777)
    try store.save(tokens)
    #expect(try FileTokenStore(file: store.file).load() == tokens)
    try store.clear()
    #expect(try store.load() == nil)
    try store.clear()
  }

  @Test func `only the owner may read the file and its folder`() async throws {
    try store.save(.sample(1))
    try store.save(.sample(2))
    try await store.withRefreshLock {}
    #expect(try mode(store.file) == 0o600)
    #expect(try mode(store.file.deletingLastPathComponent()) == 0o700)
    #expect(try mode(store.file.appendingPathExtension("lock")) == 0o600)
    #expect(try names() == ["tokens.json", "tokens.json.lock"])
  }

  @Test func `a folder that exists keeps its mode`() throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
    try FileTokenStore(file: folder.appending(path: "tokens.json")).save(.sample(1))
    #expect(try mode(folder) == 0o755)
  }

  @Test(arguments: ["", "{", "[]", #"{"accessToken":"a"}"#, "\u{0}\u{1}"])
  func `a damaged file counts as a missing one, and can be replaced`(text: String) throws {
    try store.save(.sample(1))
    try Data(text.utf8).write(to: store.file)
    #expect(try store.load() == nil)
    try store.save(.sample(2))
    #expect(try store.load()?.accessToken == "access-2")
  }

  @Test func `a file that cannot be read is not a logout`() throws {
    try FileManager.default.createDirectory(at: store.file, withIntermediateDirectories: true)
    #expect(throws: (any Error).self) { try self.store.load() }
    #expect(throws: MusterError.self) { try self.store.save(.sample(1)) }
    #expect(try names() == ["tokens.json"])
  }

  @Test func `logging out leaves no tokens of a save that was killed`() throws {
    try store.save(.sample(1))
    let left = store.file.appendingPathExtension("new-\(UUID())")
    try Data("secret".utf8).write(to: left)
    try store.clear()
    #expect(try names() == [])
  }

  @Test(.timeLimit(.minutes(1))) func `one at a time holds the lock, however many stores there are`() async throws {
    let inside = Locked(0)
    let file = store.file
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<10 {
        group.addTask {
          try await FileTokenStore(file: file).withRefreshLock {
            #expect(
              inside.change {
                $0 += 1; return $0
              } == 1)
            try await Task.sleep(for: .milliseconds(5))
            inside.change { $0 -= 1 }
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
