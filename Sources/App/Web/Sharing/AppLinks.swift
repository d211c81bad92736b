/// The apps that open share links. Files in `/.well-known/` name them to iOS and Android.
public struct AppLinks: Sendable {
  /// Like `ABCDE12345.com.example.app`. Empty: no iOS app opens links.
  var appleAppIDs: [String] = []
  /// Nil: no Android app opens links.
  var androidPackage: String?
  /// SHA-256 fingerprints of the certificates that sign the Android app.
  var androidFingerprints: [String] = []

  /// - Returns: nil for a malformed list.
  static func appleAppIDs(_ text: String) -> [String]? {
    list(text) { $0.wholeMatch(of: /[A-Z0-9]{10}\.[A-Za-z0-9.-]+/) != nil }
  }

  static func androidPackage(_ text: String) -> String? {
    text.wholeMatch(of: /[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+/) == nil ? nil : text
  }

  /// - Returns: nil for a malformed list.
  static func fingerprints(_ text: String) -> [String]? {
    list(text) { $0.wholeMatch(of: /([0-9A-F]{2}:){31}[0-9A-F]{2}/) != nil }
  }

  private static func list(_ text: String, _ isValid: (String) -> Bool) -> [String]? {
    let words = text.split(separator: ",").map { $0.split(separator: " ").joined(separator: " ") }
    return !words.isEmpty && words.allSatisfy(isValid) ? words : nil
  }
}
