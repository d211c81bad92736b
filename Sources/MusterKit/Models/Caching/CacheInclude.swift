/// What the response to a validation includes besides the verdicts.
public enum CacheInclude: String, Sendable {
  /// The keys of the list as it is now, and the items that differ from the claim.
  case changes
  /// All items of a stale collection of at most 64 KiB.
  case items
  /// The same, and their digests.
  case itemsAndDigests = "items,digests"
}
