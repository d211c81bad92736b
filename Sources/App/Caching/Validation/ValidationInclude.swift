/// The part of a stale collection that a validation includes.
enum ValidationInclude: Equatable {
  case nothing
  /// All items of small collections.
  case items(withDigests: Bool)
  /// Those of the first items that the phone lacks. See ``Delta``.
  case changes

  /// The items to read of each stale collection.
  var page: PageRequest? {
    switch self {
    case .nothing: nil
    case .items: .all
    case .changes: PageRequest(limit: Delta.maximumItems)
    }
  }
}

extension QueryFields {
  private enum Word: String, CaseIterable {
    case items, digests, changes
  }

  /// `?include=` of a validation.
  mutating func validationInclude() -> ValidationInclude {
    switch words("include", of: Word.allCases) {
    case []: return .nothing
    case [.items]: return .items(withDigests: false)
    case [.items, .digests]: return .items(withDigests: true)
    case [.changes]: return .changes
    default:
      note("include", .notAllowed, "must be items, or items,digests, or changes")
      return .nothing
    }
  }
}
