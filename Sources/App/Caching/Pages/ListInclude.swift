/// The additions to a list, besides its items.
enum ListInclude: String {
  /// The first participants of each event. Phones do not keep this list.
  case participants
  /// The digests of the items. See ``ItemDigests``.
  case digests
}

extension Dependencies {
  /// Nil unless a list is to include digests.
  func digests(if include: ListInclude?) -> ItemDigests? { include == .digests ? itemDigests : nil }
}

extension QueryFields {
  /// `?include=` of a list.
  ///
  /// - Parameter words: what this list can include, one at a time.
  mutating func include(_ words: ListInclude...) -> ListInclude? {
    word("include", of: words)
  }

  /// Records an error if the digests of a filtered list are wanted. Phones do not keep such a list.
  mutating func refuseDigests(_ include: ListInclude?, if isFiltered: Bool) {
    guard include == .digests, isFiltered else { return }
    note("include", .notAllowed, "digests are only for lists without filters and ids")
  }
}
