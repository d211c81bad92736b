import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct ProfileFolderTests {
  @Test func `folders follow the environment`() throws {
    let server = try ServerURL("https://muster.example")
    let home = try ProfileFolder(name: nil, environment: ["HOME": "/home/ana", "XDG_CONFIG_HOME": "relative"])
    #expect(
      home.tokens(for: server).file.path
        == "/home/ana/.config/muster/default/https%3A%2F%2Fmuster.example/tokens.json")
    let moved = try ProfileFolder(
      name: nil,
      environment: ["HOME": "/home/ana", "XDG_CONFIG_HOME": "/c", "XDG_CACHE_HOME": "/k", "MUSTER_PROFILE": "ben"])
    #expect(moved.tokens(for: server).file.path == "/c/muster/ben/https%3A%2F%2Fmuster.example/tokens.json")
    #expect(moved.copies(from: server).path == "/k/muster/ben/https%3A%2F%2Fmuster.example")
    let named = try ProfileFolder(name: "cleo", environment: ["HOME": "/h", "MUSTER_PROFILE": "ben"])
    #expect(named.copies(from: server).path == "/h/.cache/muster/cleo/https%3A%2F%2Fmuster.example")
  }

  @Test(arguments: ["", "..", "a/b", ".hidden", "a b", String(repeating: "a", count: 65)])
  func `names of profiles cannot leave the folder`(name: String) {
    #expect(throws: Failure.self) { try ProfileFolder(name: name, environment: ["HOME": "/h"]) }
  }

  @Test func `remembers the service for this user alone`() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "profile-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let profile = try ProfileFolder(name: nil, environment: ["XDG_CONFIG_HOME": folder.path])
    #expect(profile.server == nil)
    try profile.remember(try ServerURL("http://127.0.0.1:8080"))
    try profile.remember(try ServerURL("https://muster.example"))
    #expect(profile.server?.description == "https://muster.example")
    let file = folder.appending(path: "muster/default/server")
    for (path, mode) in [(file, 0o600), (file.deletingLastPathComponent(), 0o700)] {
      let attributes = try FileManager.default.attributesOfItem(atPath: path.path)
      #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == mode)
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: file.deletingLastPathComponent().path)
    #expect(names == ["server"])
  }
}
