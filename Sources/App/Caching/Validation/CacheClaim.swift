/// A phone's claim about its copy of one collection.
struct CacheClaim: Sendable {
  /// As the phone wrote it.
  let name: String
  let stamp: Stamps.Claim
  /// The digests of the copy's items, by key. Not every value needs to be a digest.
  var digests: JSON.Object?

  /// Reads the flat map or the one inside `timestamps`. An empty map asks for all collections.
  ///
  /// - Parameter readsDigests: whether a value may be an object with a stamp and digests.
  static func all(in json: JSON?, readsDigests: Bool) throws -> [CacheClaim] {
    var members: JSON.Object = [:]
    if let json {
      guard case .object(let outer) = json else {
        throw AppError(.malformed, "malformed-body", "The body must be a JSON object, not \(json.kind).")
      }
      members = outer
      if let inner = outer["timestamps"] {
        guard case .object(let named) = inner else {
          throw AppError.invalid("timestamps", .wrongType, "must be an object, not \(inner.kind)")
        }
        members = named
      }
    }
    if members.isEmpty { return Collection.allCases.map { CacheClaim(name: $0.rawValue, stamp: .none) } }
    return members.map { name, value in
      guard readsDigests, case .object(let copy) = value else {
        return CacheClaim(name: name, stamp: Self.stamp(value))
      }
      var claim = CacheClaim(name: name, stamp: Self.stamp(copy["timestamp"] ?? .null))
      if case .object(let digests)? = copy["items"] { claim.digests = digests }
      return claim
    }
  }

  /// A malformed stamp concerns its own collection only, so that a phone with a damaged copy recovers by itself.
  private static func stamp(_ value: JSON) -> Stamps.Claim {
    switch value {
    case .null: .none
    case .string(let text): Stamps.Claim(text)
    default: .malformed
    }
  }
}
