import Foundation

/// Runs `body` with an empty folder, and deletes the folder.
func withFolder<Value>(_ body: (URL) async throws -> Value) async throws -> Value {
  let folder = FileManager.default.temporaryDirectory.appending(path: "muster-client-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  return try await body(folder)
}

/// The permissions of a file, such as `0o600`.
func permissions(of file: URL) throws -> Int? {
  try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
}
