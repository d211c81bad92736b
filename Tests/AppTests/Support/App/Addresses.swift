@testable import App

extension EmailAddress: ExpressibleByStringLiteral {
  /// - Parameter text: in canonical form.
  public init(stringLiteral text: String) { self.init(canonical: text) }
}

extension Login: ExpressibleByStringLiteral {
  public init(stringLiteral text: String) { self.init(text) }
}
