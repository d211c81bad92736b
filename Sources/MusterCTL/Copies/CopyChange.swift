import MusterKit

/// The result of validating one list, and why the copy was stale.
struct CopyChange {
  enum Item: Equatable {
    case new(String)
    case gone(String)
    /// - Parameter members: the names of the members that differ.
    case changed(String, members: [String])
  }

  let collection: CacheCollection
  let isStale: Bool
  let hadCopy: Bool
  let items: [Item]
  let count: Int

  init(_ collection: CacheCollection, from old: ListCopy?, to new: ListCopy, isStale: Bool) {
    self.collection = collection
    self.isStale = isStale
    hadCopy = old != nil
    count = new.keys.count
    guard let old, isStale else {
      items = []
      return
    }
    func name(_ item: Changed) -> String { collection.name(of: item.item) }
    let gone = old.keys.filter { new.items[$0] == nil }.compactMap { old.items[$0] }.map { Item.gone(name($0)) }
    items =
      new.keys.compactMap { key -> Item? in
        guard let item = new.items[key] else { return nil }
        guard let before = old.items[key] else { return .new(name(item)) }
        let members = CopyChange.differences(before.item, item.item)
        return members.isEmpty ? nil : .changed(name(item), members: members)
      } + gone
  }

  /// One line about the list.
  var summary: String {
    guard isStale else { return "" }
    guard hadCopy else { return count == 0 ? "read an empty list" : "read \(count) item\(count == 1 ? "" : "s")" }
    let new = items.count { if case .new = $0 { true } else { false } }
    let gone = items.count { if case .gone = $0 { true } else { false } }
    let parts = [(new, "new"), (items.count - new - gone, "changed"), (gone, "gone")].filter { $0.0 > 0 }
    return parts.isEmpty
      ? "a change that does not show" : parts.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
  }

  /// The names of the members that differ, such as `title` or `event.title`. An object's own stamp moves with each of
  /// its changes.
  private static func differences(_ old: JSONValue, _ new: JSONValue) -> [String] {
    guard case .object(let before) = old, case .object(let after) = new else { return [] }
    let names = Set(before.keys).union(after.keys).filter { $0 != "timestamp" && before[$0] != after[$0] }
    return names.sorted().flatMap { name in
      let inner = before[name].flatMap { old in after[name].map { differences(old, $0) } } ?? []
      return inner.isEmpty ? [name] : inner.map { "\(name).\($0)" }
    }
  }
}
