import Foundation
import MusterKit

/// The copies of a user's lists on this machine: a file for each list.
struct CopyFolder {
  private let folder: URL

  init(_ folder: URL) { self.folder = folder }

  /// - Returns: nil if there is no copy, or none that can be read.
  func copy(of collection: CacheCollection) -> ListCopy? {
    guard let data = try? Data(contentsOf: file(of: collection)) else { return nil }
    return try? JSONDecoder.muster().decode(ListCopy.self, from: data)
  }

  func save(_ copy: ListCopy, of collection: CacheCollection) throws {
    try PrivateFile.write(try JSONEncoder.muster().encode(copy), to: file(of: collection))
  }

  func forget() throws {
    guard FileManager.default.fileExists(atPath: folder.path) else { return }
    do {
      try FileManager.default.removeItem(at: folder)
    } catch {
      throw Failure.refused("\(folder.path) cannot be removed.")
    }
  }

  private func file(of collection: CacheCollection) -> URL { folder.appending(path: "\(collection.rawValue).json") }
}
