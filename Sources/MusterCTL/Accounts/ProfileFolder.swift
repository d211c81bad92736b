import Foundation
import MusterKit

/// This machine's data of one user: the service in use and, for each service, the tokens and copies of lists.
///
/// ```
/// ~/.config/muster/PROFILE/server               the URL of the service in use
/// ~/.config/muster/PROFILE/SERVER/tokens.json   readable by its owner alone
/// ~/.cache/muster/PROFILE/SERVER/               the copies of `musterctl sync`
/// ```
struct ProfileFolder {
  private let settings: URL
  private let caches: URL

  /// - Parameters:
  ///   - name: nil for the profile in `MUSTER_PROFILE`, or else `default`.
  ///   - environment: `XDG_CONFIG_HOME` and `XDG_CACHE_HOME` move the folders.
  init(name: String?, environment: [String: String] = ProcessInfo.processInfo.environment) throws {
    let name = name ?? environment["MUSTER_PROFILE"].flatMap { $0.isEmpty ? nil : $0 } ?? "default"
    guard name.wholeMatch(of: /[A-Za-z0-9_][A-Za-z0-9._-]{0,63}/) != nil else {
      throw Failure.usage("\"\(name)\" is not a valid profile name. Use letters, digits, and . _ -")
    }
    settings = ProfileFolder.base("XDG_CONFIG_HOME", or: ".config", environment).appending(path: name)
    caches = ProfileFolder.base("XDG_CACHE_HOME", or: ".cache", environment).appending(path: name)
  }

  /// The service of the last login.
  var server: ServerURL? {
    let text = try? String(contentsOf: settings.appending(path: "server"), encoding: .utf8)
    return text.flatMap { try? ServerURL($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
  }

  func remember(_ server: ServerURL) throws {
    try PrivateFile.write(Data("\(server)\n".utf8), to: settings.appending(path: "server"))
  }

  func tokens(for server: ServerURL) -> FileTokenStore {
    FileTokenStore(file: settings.appending(path: server.fileName).appending(path: "tokens.json"))
  }

  func copies(from server: ServerURL) -> URL { caches.appending(path: server.fileName) }

  private static func base(_ variable: String, or fallback: String, _ environment: [String: String]) -> URL {
    // The specification ignores relative paths.
    if let path = environment[variable], path.hasPrefix("/") { return URL(filePath: path).appending(path: "muster") }
    let home = environment["HOME"].map { URL(filePath: $0) } ?? FileManager.default.homeDirectoryForCurrentUser
    return home.appending(path: fallback).appending(path: "muster")
  }
}

/// Files that their owner alone may read, in folders that their owner alone may open.
enum PrivateFile {
  /// Replaces a file atomically: a reader sees the old content or the new.
  static func write(_ data: Data, to file: URL) throws {
    let folder = file.deletingLastPathComponent()
    let draft = folder.appending(path: ".\(file.lastPathComponent).\(UUID().uuidString)")
    do {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      guard
        FileManager.default.createFile(atPath: draft.path, contents: data, attributes: [.posixPermissions: 0o600]),
        rename(draft.path, file.path) == 0
      else { throw CocoaError(.fileWriteUnknown) }
    } catch {
      try? FileManager.default.removeItem(at: draft)
      throw Failure.refused("\(file.path) cannot be written.")
    }
  }
}
