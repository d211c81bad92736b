import Foundation

/// The ends of ids that tell the items of a list apart. Their beginnings are times, which are often equal.
struct ShortID {
  private static let minimum = 6

  private let length: Int

  init(_ ids: [UUID]) {
    let texts = ids.map { $0.uuidString.lowercased() }
    length = [ShortID.minimum, 8, 12].first { ShortID.areUnique(texts, $0) } ?? 36
  }

  func of(_ id: UUID) -> String { String(id.uuidString.lowercased().suffix(length)) }

  private static func areUnique(_ texts: [String], _ length: Int) -> Bool {
    let whole = Set(texts)
    return Set(whole.map { $0.suffix(length) }).count == whole.count
  }
}
