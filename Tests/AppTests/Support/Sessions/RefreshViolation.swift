/// A violation of the contract.
struct RefreshViolation: Error, CustomStringConvertible {
  enum Kind: Sendable { case falseLogout, unseenTheft, unlikeTheModel }

  let kind: Kind
  let description: String
}
