import Foundation

extension Date {
  /// The current time in whole seconds, as providers and most libraries expect it in a JWT.
  static var wholeSecond: Date { Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down)) }
}
