import MusterKit

/// The ends of ids that tell the items of a list apart. Their beginnings are times, which are often equal.
struct ShortID {
  private static let minimum = 6

  private let length: Int

  init<Thing>(_ ids: [Identifier<Thing>]) {
    let texts = ids.map(\.description)
    length = [ShortID.minimum, 8, 12].first { ShortID.areUnique(texts, $0) } ?? 36
  }

  func of<Thing>(_ id: Identifier<Thing>) -> String { String(id.description.suffix(length)) }

  private static func areUnique(_ texts: [String], _ length: Int) -> Bool {
    let whole = Set(texts)
    return Set(whole.map { $0.suffix(length) }).count == whole.count
  }
}
