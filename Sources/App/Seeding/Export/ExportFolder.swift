import Foundation

struct ExportFolder {
  struct File: Sendable {
    let name: String
    let bytes: Data
  }

  static let index = "index.json"

  private let url: URL

  /// - Throws: ``AppError`` if the folder has files, but no earlier export.
  init(_ url: URL) throws {
    self.url = url
    let content = (try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []
    guard content.isEmpty || Self.earlierIndex(in: url) != nil else {
      throw AppError(
        .conflict, "foreign-folder",
        "\(url.path) contains files that are not an export: choose an empty or a new folder.")
    }
  }

  /// Replaces the files of an earlier export. Leaves other files alone.
  func write(_ files: [File]) throws {
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    for name in earlierFiles { try? FileManager.default.removeItem(at: url.appending(path: name)) }
    for file in files { try file.bytes.write(to: url.appending(path: file.name)) }
  }

  /// Nil if the folder's index is missing, or comes from elsewhere.
  private static func earlierIndex(in url: URL) -> JSON.Object? {
    guard let bytes = try? Data(contentsOf: url.appending(path: index)),
      case .object(let index)? = try? JSON(parsing: bytes),
      ["baseUrl", "time", "user", "calls"].allSatisfy({ index[$0] != nil })
    else { return nil }
    return index
  }

  /// Only names that stay in the folder, whatever the index says.
  private var earlierFiles: [String] {
    guard case .array(let calls)? = Self.earlierIndex(in: url)?["calls"] else { return [] }
    return calls.compactMap { call in
      guard case .object(let members) = call, case .string(let name)? = members["file"], !name.contains("/"),
        !name.hasPrefix(".")
      else { return nil }
      return name
    }
  }
}
